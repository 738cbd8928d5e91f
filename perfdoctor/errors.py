"""Every error a user can see: what happened, the likely why, the thing to do, and the exit code.

Foreign exceptions are mapped to these once, at the edge, with `raise ... from`. A class's docstring is its
page for `perfdoctor explain`; `name` is the id used there.

    PerfdoctorError
    ├── UsageError            2   the command line asks for something impossible
    ├── TargetError           3   the target could not be driven
    │   ├── Unreachable           nothing answers there
    │   ├── TlsMismatch           https to a plain port, http to a TLS port, or an untrusted certificate
    │   ├── NotOpenAI             something answers, but not with this API
    │   ├── Refused               the server answered 4xx or 5xx to every request
    │   ├── UnknownModel          the server does not serve the model asked for
    │   ├── ServerDied            it stopped answering during the run
    │   ├── NotReady              a server that was started here never answered
    │   ├── NoRoom                memory does not hold the server that was started here
    │   ├── CannotTry             a fix has no effect that could be tried here
    │   └── ModelError            a local model could not be served
    ├── RunFolderError        2   a run folder is missing, unreadable or from a newer version
    ├── DiskFull              3   the run folder could not be written
    ├── WorkerDied            4   a process of the load generator ended in the middle of the load
    └── CannotJudge           4   finished, but nothing can be concluded
"""

from __future__ import annotations


class PerfdoctorError(Exception):
    """An error with its explanation. Printed as three lines, never as a traceback."""

    exit_code = 1

    def __init__(self, what: str, why: str = "", do: str = "") -> None:
        super().__init__(what)
        self.what, self.why, self.do = what, why, do

    @classmethod
    def name(cls) -> str:
        """The id under which `explain` knows this error: the class name in kebab case."""
        return "".join(("-" + c.lower()) if c.isupper() else c for c in cls.__name__).lstrip("-")


class UsageError(PerfdoctorError):
    """The command line asks for something impossible."""

    exit_code = 2


class TargetError(PerfdoctorError):
    """The target could not be driven, so nothing was measured."""

    exit_code = 3


class Unreachable(TargetError):
    """Nothing answers at the endpoint.

    The port is closed, the host name does not resolve, or a firewall drops the packets. Check with
    `curl -v URL/v1/models`; a server that is still loading its model often does not listen yet.
    """


class TlsMismatch(TargetError):
    """The two ends disagree about TLS.

    https was asked of a port that speaks plain HTTP, or the reverse, or the certificate is not trusted here.
    """


class NotOpenai(TargetError):
    """Something answers, but not with an OpenAI-compatible API.

    A web page, a proxy's error page or another service on that port. The path is `/v1` under the endpoint.
    """


class Refused(TargetError):
    """The server answered every request with an error status.

    401 and 403: the key is missing or wrong. 404: another path or model name. 429: a rate limit. 5xx: the
    server's own log says why.
    """


class UnknownModel(TargetError):
    """The server does not serve a model of that name. `/v1/models` lists the names it knows."""


class ServerDied(TargetError):
    """The server stopped answering while it was being measured.

    Often the out-of-memory killer (`dmesg | grep -i oom`) or an unhandled exception in the server's log.
    What was measured until then is kept in the run folder.
    """


class ModelError(TargetError):
    """A local model could not be served.

    The folder holds no config.json, the weights are incomplete or broken, the architecture is unknown to the
    installed transformers, or torch is not installed (`pip install 'perfdoctor[local]'`).
    """


class NotReady(TargetError):
    """A server that was started here did not come to answer.

    It ended, or was still loading when the time was over (`--ready-timeout`), or listens on another port than
    its command shows: write `{port}` into the command, and a free one is put there.
    """


class NoRoom(TargetError):
    """Memory does not hold the server that was started here.

    Two sides that do not fit together are tried one at a time by themselves; this one does not fit alone.
    Give it less (vLLM: `--gpu-memory-utilization`, llama.cpp: `-c`), or a smaller model, and look for other
    programs with `nvidia-smi` and `free -h`.
    """


class CannotTry(TargetError):
    """A fix cannot be tried on this machine.

    It needs hardware or a package that is not here, or it is no setting of the local server but a change of
    yours: then start both sides by their commands, `perfdoctor verify FIX --before 'CMD' --after 'CMD'`.
    """


class RunFolderError(PerfdoctorError):
    """A run folder is missing, unreadable, or written by a newer perfdoctor."""

    exit_code = 2


class DiskFull(PerfdoctorError):
    """The run folder could not be written to, most often because the disk is full.

    Everything written before is kept and readable with `perfdoctor report`.
    """

    exit_code = 3


class WorkerDied(PerfdoctorError):
    """A process of the load generator ended in the middle of the load.

    Several processes may share a load (`--workers`). When one is killed, its part is not sent any more and
    its open requests are lost, so the run is stopped; what was recorded until then is kept.
    """

    exit_code = 4


class CannotJudge(PerfdoctorError):
    """The run finished, but nothing can be concluded from it."""

    exit_code = 4


def tree() -> dict[str, type[PerfdoctorError]]:
    """All error classes by the id that `explain` uses."""
    found: dict[str, type[PerfdoctorError]] = {}
    stack: list[type[PerfdoctorError]] = [PerfdoctorError]
    while stack:
        cls = stack.pop()
        stack.extend(cls.__subclasses__())
        if cls is not PerfdoctorError:
            found[cls.name()] = cls
    return found
