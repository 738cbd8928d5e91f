"""iostat: traffic, waiting times and queue of each disk, an interval at a time.

Reads `iostat`, `iostat -x` of all generations (`await avgqu-sz svctm` of sysstat before 12, `r_await aqu-sz
rareq-sz` since), `-s`, `-h`, `-m`, `-t`, `-o JSON`, with or without its CPU block. What the numbers can
show: r_await is a mean wait in ms, aqu-sz how many requests were open. %util is the time with any request
open, which is no saturation on drives that serve many at once; svctm is an estimate that sysstat dropped,
and not read. A reader that its control group throttles waits where iostat cannot see it.

The first report covers the time since boot and is left out, unless `-y` kept it from being printed: then
two blank lines follow the banner. Make it: `iostat -xyt 1`, while the model loads or serves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perfdoctor.evidence._banner import Banner, banner_of, interval_of
from perfdoctor.evidence._intervals import Clock, Stamp, clock_of, stamp_of
from perfdoctor.evidence._metrics import DISK, HOST_CPU
from perfdoctor.evidence._numbers import number, share, size_bytes
from perfdoctor.evidence._reader import Reader, Reading, Skipped
from perfdoctor.evidence._source import Line, Source
from perfdoctor.model import Sample

SECTOR = 512.0
MOST_BYTES_PER_S = 1e12  # beyond any device: a counter of the kernel that wrapped
RATES = {  # column without its unit -> our metric
    "r/s": ("reads_per_s", 1.0), "w/s": ("writes_per_s", 1.0),
    "rkB/s": ("read_bytes_per_s", 1024.0), "wkB/s": ("write_bytes_per_s", 1024.0),
    "rMB/s": ("read_bytes_per_s", 2.0**20), "wMB/s": ("write_bytes_per_s", 2.0**20),
    "rsec/s": ("read_bytes_per_s", SECTOR), "wsec/s": ("write_bytes_per_s", SECTOR),
    "kB_read/s": ("read_bytes_per_s", 1024.0), "kB_wrtn/s": ("write_bytes_per_s", 1024.0),
    "MB_read/s": ("read_bytes_per_s", 2.0**20), "MB_wrtn/s": ("write_bytes_per_s", 2.0**20),
    "Blk_read/s": ("read_bytes_per_s", SECTOR), "Blk_wrtn/s": ("write_bytes_per_s", SECTOR),
    "r_await": ("r_await_s", 1e-3), "w_await": ("w_await_s", 1e-3), "await": ("await_s", 1e-3),
    "aqu-sz": ("aqu_sz", 1.0), "avgqu-sz": ("aqu_sz", 1.0),
    "%util": ("busy_share", 0.01), "util": ("busy_share", 0.01),
}  # fmt: skip
CPU = {"%idle": "host_idle_share", "%iowait": "host_iowait_share", "%steal": "host_steal_share"}
_COLUMN = re.compile(r"%?[a-zA-Z_]+/s|%\w+|\w+-sz|(\w_)?await|svctm|tps|[kM]B_(read|wrtn|dscd)|Blk_\w+")
_DEVICE = re.compile(r"^\s*(Device|Disk):?\s+\S")
_DEVICE_LAST = re.compile(r"^\s*(r/s|w/s|d/s|f/s|tps)\s.*\sDevice\s*$")
_NAME = re.compile(r"[A-Za-z][\w!:./-]*")


@dataclass(slots=True)
class _Report:
    """One interval: what it says of the CPUs and of each device, None for one that could not be read."""

    stamp: Stamp | None = None
    cpu: dict[str, float | None] = field(default_factory=dict)
    disks: dict[str, dict[str, float | None] | None] = field(default_factory=dict)
    since_boot: bool = False


@dataclass(slots=True)
class _Parser:
    """Goes through the lines once; a table ends with the first line that is no row of it."""

    reports: list[_Report] = field(default_factory=list)
    claimed: set[int] = field(default_factory=set)
    skipped: list[Skipped] = field(default_factory=list)
    banner: Banner | None = None
    foreign: bool = False  # below the banner of a second host
    columns: tuple[str, ...] = ()
    name_last: bool = False
    cpu_columns: tuple[str, ...] = ()
    stamp: Stamp | None = None
    fresh: bool = True  # the next table begins a report
    blanks: int | None = None  # since the banner, until its first report

    def read(self, line: Line) -> None:
        text = line.text
        if '"disk_device"' in text or '"avg-cpu"' in text:
            self._json(line)
        elif found := banner_of(text):
            self._begin(line, found)
        elif text.lstrip().startswith("avg-cpu:"):
            self._claim(line)
            self.fresh, self.columns = True, ()
            self.cpu_columns = tuple(text.split(":", 1)[1].split())
            self._report(line)
        elif self.cpu_columns:
            self._cpu(line)
        elif _DEVICE.match(text) or _DEVICE_LAST.match(text):
            self._header(line)
        elif stamp := _stamp_line(text, self.banner):
            self.stamp, self.fresh, self.columns = stamp, True, ()
            self._claim(line)
        elif text.strip() and self.columns:
            self._row(line)
        elif not text.strip():
            self.columns = ()
            self.blanks = None if self.blanks is None else self.blanks + 1

    def _claim(self, line: Line) -> None:
        self.claimed.add(line.number)

    def _begin(self, line: Line, found: Banner) -> None:
        self._claim(line)
        self.foreign = self.banner is not None and found.host != self.banner.host
        self.banner = self.banner or found
        self.stamp, self.columns, self.fresh = None, (), True
        self.blanks = 0

    def _report(self, line: Line) -> _Report:
        """The report that a table belongs to: a new one after a stamp, a CPU block or a banner."""
        if self.fresh or not self.reports:
            self.reports.append(_Report(self.stamp, since_boot=self.blanks is not None and self.blanks < 2))
            self.fresh, self.blanks = False, None
        return self.reports[-1]

    def _cpu(self, line: Line) -> None:
        values = line.text.split()
        columns, self.cpu_columns = self.cpu_columns, ()
        if not values:
            return
        self._claim(line)
        if len(values) != len(columns):
            self.skipped.append(Skipped(line.number, f"{len(values)} of {len(columns)} CPU columns"))
            return
        found = dict(zip(columns, values, strict=True))
        self.reports[-1].cpu = {CPU[c]: share(found[c]) for c in CPU if c in found}

    def _header(self, line: Line) -> None:
        """In a paste that lost its line ends, the row follows on the header's own line."""
        self._claim(line)
        words = line.text.split()
        self.name_last = not _DEVICE.match(line.text)
        words = words[:-1] if self.name_last else words[1:]
        split = next((i for i, word in enumerate(words) if not _COLUMN.fullmatch(word)), len(words))
        self.columns = tuple(words[:split])
        if split < len(words):
            self._row(Line(line.number, " ".join(words[split:])))

    def _row(self, line: Line) -> None:
        words = line.text.split()
        name, values = (words[-1], words[:-1]) if self.name_last else (words[0], words[1:])
        if not _NAME.fullmatch(name) or not values or not any(c.isdigit() for c in values[0]):
            self.columns = ()  # the table is over
            return
        self._claim(line)
        report = self._report(line)
        if len(values) != len(self.columns):
            report.disks[name] = None
            self.skipped.append(Skipped(line.number, f"{name}: {len(values)} of {len(self.columns)} columns"))
            return
        self._disk(name, dict(zip(self.columns, values, strict=True)), line)

    def _json(self, line: Line) -> None:
        """`-o JSON` puts each device on a line of its own, which survives a cut-off file."""
        self._claim(line)
        try:
            found = json.loads(line.text[line.text.find("{") :].rstrip().rstrip(","))
            items = {str(k): str(v) for k, v in found.items()}
        except (ValueError, AttributeError, RecursionError):
            self.skipped.append(Skipped(line.number, "no JSON object"))
            return
        if "disk_device" in items:
            self._disk(items.pop("disk_device"), items, line)
            return
        self.fresh = True
        report = self._report(line)
        report.since_boot = len(self.reports) == 1
        report.cpu = {CPU[f"%{k}"]: share(v) for k, v in items.items() if f"%{k}" in CPU}

    def _disk(self, name: str, found: Mapping[str, str], line: Line) -> None:
        """A device that comes again begins the next report where nothing else parts them."""
        if self.foreign:
            self.skipped.append(Skipped(line.number, "another host than the first one"))
            return
        values = _disk_values(found)
        if wrapped := [
            n for n, v in values.items() if n.endswith("bytes_per_s") and (v or 0) > MOST_BYTES_PER_S
        ]:
            values |= dict.fromkeys(wrapped)
            self.skipped.append(
                Skipped(line.number, f"{name}: more than any device can do, a wrapped counter")
            )
        seen = self._report(line).disks.get(name) or {}
        if seen.keys() & values.keys():
            self.fresh, seen = True, {}
        self._report(line).disks[name] = {**seen, **values}


def _stamp_line(text: str, banner: Banner | None) -> Stamp | None:
    """Of `-t`: a line with nothing but date and time."""
    bare = text.strip()
    if not bare or len(bare) > 40 or not bare[0].isdigit():
        return None
    return stamp_of(bare, banner.date if banner else None)


def _disk_values(found: Mapping[str, str]) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for column, text in found.items():
        if column in RATES:
            name, factor = RATES[column]
            plain = number(text.removesuffix("%"))
            sized = size_bytes(text) if plain is None else plain * factor  # `-h` has a unit in each cell
            values[name] = sized if sized is not None and sized >= 0 else None
    if "%rwait" in found and "aqu_sz" in values:
        values["r_await_s"] = _misnamed_wait(found["%rwait"], values)
    for rate, wait in (("reads_per_s", "r_await_s"), ("writes_per_s", "w_await_s")):
        if values.get(rate) == 0 and wait in values:
            values[wait] = None  # iostat prints 0.00 where nothing waited
    return values


def _misnamed_wait(text: str, values: Mapping[str, float | None]) -> float | None:
    """No iostat has a column %rwait. It is r_await in ms where Little's law says so: queue = reads x wait."""
    wait, reads, queue = number(text), values.get("reads_per_s"), values.get("aqu_sz")
    if wait is None or not reads or not queue or abs(reads * wait * 1e-3 / queue - 1) > 0.05:
        return None
    return wait * 1e-3


def read(source: Source) -> Reading | None:
    """Samples `disk` of each device and `cpu` of the host, one an interval."""
    parser = _Parser()
    for line in source.lines:
        parser.read(line)
    if not any(r.disks for r in parser.reports):
        return None
    return _reading(source.lines, parser)


def _reading(lines: Sequence[Line], parser: _Parser) -> Reading:
    notes = []
    kept = [r for r in parser.reports if r.disks and not r.since_boot]
    left_out = sum(r.since_boot for r in parser.reports)
    if left_out:
        notes.append(
            "the first report of iostat covers the time since boot and is left out"
            + ("" if kept else "; nothing else is there: run `iostat -xyt 1` for some seconds")
        )
    if any("%rwait" in line.text for line in lines if line.number in parser.claimed):
        notes.append("no iostat has a column %rwait: it is r_await in ms if it fits the queue, else not read")
    clock = clock_of([r.stamp for r in kept], interval_of(lines, "iostat"))
    if not clock.ordered:
        notes.append("the stamps are out of order; reports are taken one after the other")
    cores = parser.banner.cores if parser.banner else None
    return Reading(
        samples=tuple(_samples(kept, clock, cores)),
        metrics=(*DISK, *HOST_CPU),
        lines=frozenset(parser.claimed),
        skipped=tuple(parser.skipped),
        notes=tuple(notes),
        clock=clock.kind,
        wall_zero=clock.wall_zero,
    )


def _samples(reports: Sequence[_Report], clock: Clock, cores: float | None) -> list[Sample]:
    found = []
    for at_s, report in zip(clock.ends_s, reports, strict=True):
        if report.cpu:
            values = {**report.cpu, **({"host_cores": cores} if cores else {})}
            found.append(Sample(at_s=at_s, probe="cpu", values=values))
        for name, disk in report.disks.items():
            if disk:
                found.append(Sample(at_s=at_s, probe="disk", labels={"device": name}, values=disk))
    return found


READER = Reader("iostat", read)
