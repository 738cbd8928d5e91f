"""The run folder: the only reader and writer, and the only door between collecting, judging and telling.

    run.json  scenario.toml  requests.jsonl  samples.jsonl  stacks.folded  log.txt     the record
    diagnosis.json  report.html                                                        derived, deletable

Appends go to memory and reach the disk within 250 ms, so a run killed at any moment is readable up to then;
a torn last line is skipped. Whole files are replaced atomically.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from perfdoctor import folders
from perfdoctor.disk import claim, disk_errors, is_claimed, write_atomically
from perfdoctor.errors import DiskFull, RunFolderError
from perfdoctor.model import SCHEMA_VERSION, RequestRecord, RunFacts, Sample
from perfdoctor.redact import Redactor

if TYPE_CHECKING:
    import pandas

FLUSH_S = 0.25

_T = TypeVar("_T")


def _plain(value: Any) -> Any:
    """Builtin types without None, which TOML cannot hold."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


class RunWriter:
    """A run being recorded. Thread-safe; `seal` ends it. An unwritable disk surfaces as DiskFull."""

    def __init__(self, path: Path, facts: RunFacts, redactor: Redactor) -> None:
        self.path, self.facts, self._redactor = path, facts, redactor
        self._pending: dict[str, list[bytes]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.failure: DiskFull | None = None
        self._claim = claim(path)  # until it is sealed, or this process ends
        self._write_facts()
        import tomli_w

        scenario = redactor.clean_tree(_plain(msgspec.to_builtins(facts.scenario)))
        write_atomically(self.path / "scenario.toml", tomli_w.dumps(scenario).encode())
        self._flusher = threading.Thread(target=self._flush_forever, name="store", daemon=True)
        self._flusher.start()

    def append_request(self, record: RequestRecord) -> None:
        self._append("requests.jsonl", record)

    def append_sample(self, sample: Sample) -> None:
        self._append("samples.jsonl", sample)

    def append_stacks(self, folded: str) -> None:
        self._append_bytes("stacks.folded", folded.encode())

    def log(self, text: str) -> None:
        stamp = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self._append_bytes("log.txt", f"{stamp} {text}".encode("utf-8", "replace"))

    def log_exception(self, error: BaseException) -> None:
        """The traceback, for log.txt only."""
        self.log("".join(traceback.format_exception(error)))

    def update(self, **changes: Any) -> None:
        """Change fields of run.json and write it at once."""
        self.facts = msgspec.structs.replace(self.facts, **changes)
        self._write_facts()

    def seal(self, **changes: Any) -> None:
        """Write out everything and set the final state. Safe to call once only."""
        self._stop.set()
        self._flusher.join(timeout=5)
        with self._claim:
            self._flush()
            self.update(**changes)

    def check(self) -> None:
        """Raise what the background writer met, so that a run does not go on unrecorded."""
        if self.failure:
            raise self.failure

    # -- the way to the disk

    def _append(self, name: str, record: msgspec.Struct) -> None:
        with self._lock:
            self._pending.setdefault(name, []).append(msgspec.json.encode(record))

    def _append_bytes(self, name: str, line: bytes) -> None:
        with self._lock:
            self._pending.setdefault(name, []).append(line.rstrip(b"\n"))

    def _flush_forever(self) -> None:
        while not self._stop.wait(FLUSH_S):
            try:
                self._flush()
            except DiskFull as error:
                self.failure = error
                return

    def _flush(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, {}
        for name, lines in pending.items():
            block = self._clean(name, lines)
            with disk_errors(self.path), (self.path / name).open("ab") as file:
                file.write(block)

    def _clean(self, name: str, lines: list[bytes]) -> bytes:
        """Records keep their structure, whatever a secret looks like; log and stacks are plain text."""
        block = b"\n".join(lines) + b"\n"
        if not self._redactor.found_in(block):
            return block
        if not name.endswith(".jsonl"):
            return self._redactor.clean_bytes(block)
        trees = (self._redactor.clean_tree(msgspec.json.decode(line)) for line in lines)
        return b"".join(msgspec.json.encode(tree) + b"\n" for tree in trees)

    def _write_facts(self) -> None:
        tree = self._redactor.clean_tree(msgspec.to_builtins(self.facts))
        write_atomically(self.path / "run.json", msgspec.json.format(msgspec.json.encode(tree), indent=1))


class Run:
    """A recorded run, complete or not. Everything derived from it is a function of this object."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.facts = _read_facts(path)
        self.damaged: dict[str, int] = {}  # file -> lines that were left out when it was read last

    @property
    def state(self) -> str:
        """A folder marked running that nobody writes to was killed: nothing is left to finish it."""
        if self.facts.state != "running":
            return self.facts.state
        return "running" if is_claimed(self.path) else "interrupted"

    def read_requests(self) -> tuple[RequestRecord, ...]:
        return self._read("requests.jsonl", RequestRecord)

    def read_samples(self) -> tuple[Sample, ...]:
        return self._read("samples.jsonl", Sample)

    def _read(self, name: str, kind: type[_T]) -> tuple[_T, ...]:
        lines = list(_lines(self.path / name, kind))
        found = tuple(line for line in lines if line is not None)
        self.damaged[name] = len(lines) - len(found)
        return found

    def requests(self) -> pandas.DataFrame:
        """One row per request, columns named as RequestRecord's fields."""
        import pandas

        frame: pandas.DataFrame = pandas.DataFrame([msgspec.to_builtins(r) for r in self.read_requests()])
        return frame

    def samples(self) -> pandas.DataFrame:
        """One row per value: at_s, probe, metric, value, status and one column per label."""
        import pandas

        rows = [
            {"at_s": s.at_s, "probe": s.probe, "metric": name, "value": value, "status": s.status} | s.labels
            for s in self.read_samples()
            for name, value in (s.values or {"": None}).items()
        ]
        frame: pandas.DataFrame = pandas.DataFrame(rows)
        return frame

    def write_derived(self, name: str, content: bytes) -> Path:
        """Write diagnosis.json, report.html and the like beside the record."""
        write_atomically(self.path / name, content)
        return self.path / name


def create_run(facts: RunFacts, folder: Path | None = None, secrets: Iterable[str] = ()) -> RunWriter:
    """Make a new, empty run folder. A given folder must not hold a run yet."""
    path = folders.given(folder) if folder else folders.fresh(facts.command)
    return RunWriter(path, msgspec.structs.replace(facts, run=path.name), Redactor(secrets))


def open_run(path: str | Path = "latest") -> Run:
    """A run folder by path, by name under the runs root, or `latest`."""
    return Run(folders.latest() if str(path) == "latest" else folders.named(str(path)))


def _read_facts(path: Path) -> RunFacts:
    try:
        raw = (path / "run.json").read_bytes()
        version = msgspec.json.decode(raw, type=dict[str, Any]).get("schema", 0)
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise RunFolderError(
                f"{path} was written by a newer perfdoctor (schema {version}, not {SCHEMA_VERSION})",
                "Older versions cannot know what newer records mean.",
                "update: pip install -U perfdoctor",
            )
        return msgspec.json.decode(raw, type=RunFacts)
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{path} is no run folder", "It holds no run.json.", "give a folder that perfdoctor wrote"
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RunFolderError(
            f"{path}/run.json is damaged: {error}",
            "The file was changed or cut off.",
            "restore it from a copy, or repeat the run",
        ) from error
    except OSError as error:
        raise _unreadable(path / "run.json", error) from error


def _unreadable(path: Path, error: OSError) -> RunFolderError:
    return RunFolderError(
        f"{path} cannot be read: {error.strerror}",
        "It belongs to another user, or is no file.",
        f"ls -l {path}",
    )


def _lines(path: Path, kind: type[_T]) -> Iterator[_T | None]:
    """Records of a JSONL file; None for a line that is none. A last line without its end was cut off by a
    kill and is no line yet."""
    decoder = msgspec.json.Decoder(kind)
    try:
        with path.open("rb") as file:
            for line in file:
                try:
                    yield decoder.decode(line)
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    if line.endswith(b"\n"):
                        yield None
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(path, error) from error
