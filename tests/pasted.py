"""Other tools' output for tests: samples of real runs, trimmed, and texts written down in a test."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from perfdoctor.evidence._reader import Reader, Reading
from perfdoctor.evidence._source import Source
from perfdoctor.model import Sample

SAMPLES = Path(__file__).parent / "unit" / "evidence" / "samples"


def reader(name: str) -> Reader:
    found: Reader = import_module(f"perfdoctor.evidence.{name}").READER
    return found


def reading(name: str, sample: str) -> Reading:
    """What a reader makes of a sample file, which must be its own."""
    found = reader(name).read(Source(SAMPLES / sample))
    assert found is not None, f"{name} does not know {sample}"
    return found


def read_text(name: str, text: str | bytes, folder: Path) -> Reading | None:
    path = folder / "pasted.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return reader(name).read(Source(path))


def change_sample(name: str, sample: str, change: Callable[[str], str], folder: Path) -> Reading | None:
    """The same of a sample that something happened to."""
    return read_text(name, change((SAMPLES / sample).read_text()), folder)


def of_probe(found: Reading, probe: str, **labels: str) -> list[Sample]:
    return [s for s in found.samples if s.probe == probe and labels.items() <= s.labels.items()]


def values(found: Reading, probe: str, metric: str, **labels: str) -> list[float | None]:
    """Of all samples of a probe that have the metric, in order."""
    return [s.values[metric] for s in of_probe(found, probe, **labels) if metric in s.values]


def told(found: Reading) -> dict[str, float]:
    return {t.name: t.value for t in found.told}
