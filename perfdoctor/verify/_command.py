"""A side that is a server's own command: its process, port, readiness, log and end are ours."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import msgspec

from perfdoctor import interrupts
from perfdoctor.errors import NoRoom, NotReady, PerfdoctorError, TargetError, UsageError
from perfdoctor.model import SideName, Target, TriedSide
from perfdoctor.preflight.control import Control
from perfdoctor.probes._processes import listener_pid
from perfdoctor.redact import Redactor, command_secrets
from perfdoctor.verify._side import Log, is_no_room

PLACEHOLDER = "{port}"
HOST = "127.0.0.1"
POLL_S = 0.2
GRACE_S = 10.0  # between SIGTERM and SIGKILL: engines with several processes take seconds
_PORT = re.compile(r"--(?:port|http-port)(?:=|$)|-p$")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True, slots=True)
class Command:
    """`environment` are the NAME=VALUE words before the program. `port` None: a free one is put in."""

    words: tuple[str, ...]
    environment: dict[str, str]
    port: int | None
    text: str  # as it may be shown
    secrets: tuple[str, ...]


def parse(text: str, name: SideName, port: int | None = None) -> Command:
    """`port`: where the command shows none. UsageError for what cannot be started."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(
            f"--{name} is no command: {error}",
            "",
            f"put it into single quotes: --{name} 'llama-server -m ...'",
        ) from error
    environment: dict[str, str] = {}
    while words and _VARIABLE.match(words[0]):
        variable, _, value = words.pop(0).partition("=")
        environment[variable] = value
    if not words:
        raise UsageError(
            f"--{name} names no program", "", f"--{name} 'vllm serve MODEL --port {PLACEHOLDER}'"
        )
    free = any(PLACEHOLDER in word for word in words)
    found_port = None if free else _shown_port(words) or port
    if found_port is None and not free:
        raise UsageError(
            f"the port of --{name} is not known",
            f"Its command has neither --port N nor {PLACEHOLDER}.",
            f"write {PLACEHOLDER} where the port belongs, or tell which it is: --port 8000",
        )
    secrets = command_secrets([*(f"{k}={v}" for k, v in environment.items()), *words])
    return Command(tuple(words), environment, found_port, Redactor(secrets).clean(text), secrets)


def _shown_port(words: Sequence[str]) -> int | None:
    """Of `--port 8000`, `--port=8000` and the like."""
    for word, follows in zip(words, (*words[1:], ""), strict=True):
        value = word.partition("=")[2] or follows
        if _PORT.match(word) and value.isdecimal() and 0 < int(value) < 65536:
            return int(value)
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class CommandSide:
    name: SideName
    command: Command
    log: Log
    secret: str | None = None  # of its API, where its list of models asks for one
    ready_s: float = 600.0
    tried: TriedSide = field(default_factory=TriedSide)
    patient: None = None
    owned: bool = True
    _process: subprocess.Popen[bytes] | None = None
    _reader: threading.Thread | None = None
    _url: str = ""

    def __post_init__(self) -> None:
        self.tried = TriedSide(command=self.command.text)

    @property
    def up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        port = self.command.port or free_port()
        check_free(port, self.name)
        self._url = f"http://{HOST}:{port}"
        self.log.tail.clear()
        began_s = time.monotonic()
        with interrupts.shield():  # a process that is started is known, so that it can be stopped
            self._process = self._spawn(port)
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()
        try:
            self._await_ready(began_s)
        except BaseException:
            self.stop()
            raise
        self.tried = msgspec.structs.replace(
            self.tried, start_s=self.tried.start_s or time.monotonic() - began_s
        )

    def _spawn(self, port: int) -> subprocess.Popen[bytes]:
        words = [word.replace(PLACEHOLDER, str(port)) for word in self.command.words]
        try:
            return subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that Ctrl-C reaches only this command, which stops it in order
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.command.environment},
            )
        except OSError as error:
            raise UsageError(
                f"--{self.name} cannot be started: {words[0]}: {error.strerror}",
                "The program is not there, or may not be run.",
                f"check with: command -v {shlex.quote(words[0])}",
            ) from error

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        clean = Redactor([*self.command.secrets, self.secret or ""]).clean
        assert process.stdout is not None
        with process.stdout as stream:
            for raw in stream:
                if line := raw.decode(errors="replace").rstrip():
                    self.log(clean(line))

    def _await_ready(self, began_s: float) -> None:
        with Control(self._url, self.secret) as control:
            while not _answers(control):
                if not self.up:
                    raise self._ended()
                if time.monotonic() - began_s > self.ready_s:
                    raise NotReady(
                        f"the {self.name} side did not answer within {self.ready_s:.0f} s",
                        f"Its log ends: {self.last_words()}",
                        f"is it port {urlsplit(self._url).port}? A longer wait: --ready-timeout 20m",
                    )
                time.sleep(POLL_S)

    def _ended(self) -> PerfdoctorError:
        assert self._process is not None
        if self._reader:
            self._reader.join(timeout=2)
        code = self._process.returncode
        why = f"Its log ends: {self.last_words()}"
        do = "read its whole log, or start the command by hand"
        if code in (-signal.SIGKILL, 128 + signal.SIGKILL) or is_no_room(self.last_words()):
            return NoRoom(f"there is not enough memory for the {self.name} side", why, "give it less memory")
        return NotReady(f"the {self.name} side ended before it answered (exit code {code})", why, do)

    def stop(self) -> None:
        """SIGTERM, a grace period, SIGKILL, to the process and to all that it started. Repeatable."""
        if self._process is None:
            return
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        self._signal(signal.SIGKILL)
        self._process.wait()
        if self._reader:
            self._reader.join(timeout=2)

    def _signal(self, number: signal.Signals) -> None:
        """The group outlives its leader as long as it has members."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def target(self, base: Target) -> Target:
        return msgspec.structs.replace(base, endpoint=self._url, options={})

    def last_words(self) -> str:
        return self.log.words()


def check_free(port: int | None, name: SideName) -> None:
    """Somebody else's server on that port would be measured instead. None: one is chosen that is free."""
    if port is None:
        return
    try:
        socket.create_connection((HOST, port), 0.3).close()
    except OSError:
        return
    pid = listener_pid(port)
    who = f"process {pid} listens" if pid else "something listens"
    raise NotReady(
        f"port {port} of the {name} side is taken: {who} there",
        "Its answers would be taken for those of the server that is to be tried.",
        f"stop it, or write {PLACEHOLDER} into the command for a free port",
    )


def _answers(control: Control) -> bool:
    """It lists its models, and does not say of itself that it is not healthy yet."""
    try:
        models = control.get("/v1/models")
    except TargetError:
        return False
    if models.status in (401, 403):
        return True
    health = control.try_get("/health")
    return models.status == 200 and not (health and health.status == 503)
