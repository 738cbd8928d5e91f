"""Every reader against anything at all: a reading or None, never a traceback, and never for long."""

from __future__ import annotations

import math
import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfdoctor import registry
from perfdoctor.evidence._reader import Reader, Reading
from perfdoctor.evidence._source import Source
from tests.pasted import SAMPLES

READERS: dict[str, Reader] = {
    name: reader for name, reader, _ in registry.discover("perfdoctor.evidence", "READER")
}
BLOBS = [path.read_bytes() for path in sorted(SAMPLES.iterdir()) if path.is_file()]
MOST_S = 2.0  # on a busy machine; most take a millisecond


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pasted")


def read_all(blob: bytes, folder: Path) -> dict[str, Reading]:
    """What each reader makes of the bytes; the promises that all must keep are held here."""
    path = folder / "blob"
    path.write_bytes(blob)
    source = Source(path)
    found = {}
    for name, reader in READERS.items():
        began_s = time.perf_counter()
        reading = reader.read(source)
        assert time.perf_counter() - began_s < MOST_S, name
        if reading is not None:
            check(name, reading, len(source.lines))
            found[name] = reading
    return found


def check(name: str, reading: Reading, lines: int) -> None:
    finite = [v for s in reading.samples for v in s.values.values() if v is not None]
    assert all(isinstance(v, int | float) and math.isfinite(v) for v in finite), name
    assert all(math.isfinite(t.value) for t in reading.told), name
    assert all(1 <= n <= max(1, lines) for n in reading.lines), name
    assert {s.line for s in reading.skipped} <= reading.lines | {1}, name
    assert reading.clock in ("stamps", "interval", "none"), name


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(blob=st.binary(max_size=4000))
def test_any_bytes(blob: bytes, folder: Path) -> None:
    """Nothing that bytes can spell is more than a reading."""
    read_all(blob, folder)


def mangled(blob: bytes, seed: int) -> bytes:
    """What happens to a paste: cut, doubled, other line ends and decimals, lost words, noise between."""
    rng = random.Random(seed)
    lines = blob.split(b"\n")
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(lines))
        line = lines[at]
        kind = rng.randrange(8)
        if kind == 0:
            del lines[at : at + rng.randint(1, 4)]
        elif kind == 1:
            lines[at] = line[: rng.randint(0, len(line))]
        elif kind == 2:
            lines.insert(at, rng.choice(BLOBS).split(b"\n")[0])
        elif kind == 3:
            lines[at] = b" ".join(rng.sample(line.split(), len(line.split())))
        elif kind == 4:
            lines[at] = line.replace(b"0", rng.choice([b"-nan", b"N/A", b"-", b"9" * 400, b"\xff"]))
        elif kind == 5:
            lines = [x.replace(b".", b",") for x in lines]
        elif kind == 6:
            lines = [x + b"\r" for x in lines]
        else:
            lines[at : at + 2] = [b"".join(lines[at : at + 2])]
        lines = lines or [b""]
    return b"\n".join(lines)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(which=st.integers(0, len(BLOBS) - 1), seed=st.integers(0, 10**9))
def test_any_mangled_sample(which: int, seed: int, folder: Path) -> None:
    """Real output that something happened to."""
    read_all(mangled(BLOBS[which], seed), folder)


@pytest.mark.parametrize("path", sorted(p for p in SAMPLES.iterdir() if p.is_file()), ids=lambda p: p.name)
def test_readers_do_not_take_each_others_samples(path: Path, folder: Path) -> None:
    """A line belongs to one tool; a page of totals to none."""
    found = read_all(path.read_bytes(), folder)

    claims = [(name, n) for name, reading in found.items() for n in reading.lines]
    assert len({n for _, n in claims}) == len(claims), sorted(found)


def test_two_tools_in_one_file_are_both_read(folder: Path) -> None:
    """Each finds its own lines between those of the other."""
    mixed = b"\n".join((SAMPLES / name).read_bytes() for name in ("iostat_12_x.txt", "vmstat.txt", "top.txt"))

    found = read_all(mixed, folder)

    assert {"iostat", "vmstat", "top"} <= set(found)


@pytest.mark.slow
def test_a_million_lines_of_nothing(folder: Path) -> None:
    """A long log of no tool costs each reader seconds at most, and memory for its lines alone."""
    path = folder / "long"
    path.write_text(
        "2026-12-01 10:00:00 INFO nothing to see, 12.5 ms, 100% done, PID 7 | 3 | 4\n" * 1_000_000
    )
    source = Source(path)
    assert source.lines

    for name, reader in READERS.items():
        began_s = time.perf_counter()
        reader.read(source)
        assert time.perf_counter() - began_s < 10, name
