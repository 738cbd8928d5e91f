"""Trims a run folder to what judging needs, so that it can be kept as a golden run.

    python -m tests.golden.trim RUN OUT [--limit 300]      limit in kB, of all files together

Dropped: what is derived, log.txt, stacks.folded (nobody judges by them), nulls. Times are rounded to 1 us.
Every request stays. Of the samples every k-th of each probe and label set stays, with the first and last and
both neighbours of every edge of a phase, so that a counter's gain over a phase is what it was. Each probe has
a k of its own: the one that takes most room is thinned next, counters long before gauges, until all fit. What
the local server told of itself stays whole. Host name, foreign URLs and absolute paths are replaced. Ends
with 1 when the trimmed run is judged otherwise than the whole one.
"""

from __future__ import annotations

import argparse
import bisect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from perfdoctor import store
from perfdoctor.diagnosis import pipeline
from perfdoctor.diagnosis.observations import CHILD_TELEMETRY
from perfdoctor.model import Diagnosis, RunFacts, Sample

LOOPBACK = ("127.0.0.1", "localhost", "::1")
# The kernel's own files and programs say nothing of a person, and cross-check commands name them
_PATH = re.compile(r"(?<![\w.:/])/(?!(?:proc|sys|dev|usr|etc)/)(?:[^\s/\"'<>|:,;()]+/)+([^\s/\"'<>|:,;()]*)")


def judged(run: store.Run) -> dict[str, Any]:
    """What a golden run must keep being judged as."""
    diagnosis = pipeline.diagnose(run.facts, run.state, run.read_requests(), run.read_samples())
    return essence(diagnosis)


def essence(diagnosis: Diagnosis) -> dict[str, Any]:
    top = next((f for f in diagnosis.findings if f.status == "hit"), None)
    return {
        "status": diagnosis.verdict.status,
        "class": diagnosis.verdict.cls,
        "rule": top.rule if top else None,
        "confidence": top.confidence if top else None,
        "trust": diagnosis.trust.status,
    }


def without_paths(tree: Any, words: dict[str, str]) -> Any:
    """Every string of a JSON tree with absolute paths cut to their last part, and `words` replaced."""
    if isinstance(tree, dict):
        return {key: without_paths(value, words) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [without_paths(value, words) for value in tree]
    if not isinstance(tree, str):
        return tree
    for word, instead in words.items():
        tree = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", instead, tree)
    return _PATH.sub(r"/golden/\1", tree)


def private_words(facts: RunFacts) -> dict[str, str]:
    """Names of machines in this run, each with what stands for it."""
    names = {facts.host.hostname: "host"} if facts.host.hostname else {}
    for url in (facts.target.url, facts.scenario.target.endpoint or ""):
        host = urlsplit(url).hostname
        if host and host not in LOOPBACK:
            names[host] = "server.example"
    return names


def compact(tree: Any) -> Any:
    """Without nulls, which mean the same when left out, and with times to the microsecond."""
    if isinstance(tree, dict):
        return {key: compact(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, (list, tuple)):
        return [compact(value) for value in tree]
    return round(tree, 6) if isinstance(tree, float) else tree


def thin(samples: Sequence[Sample], edges: Iterable[float], every: Mapping[str, int]) -> list[Sample]:
    """Every k-th of each series with its ends and the neighbours of each edge, in the order of time.

    `every` is k by probe; a probe that it does not name stays whole. Of a series that never changes, such as
    the counters of a thread that only sleeps, the ends say all.
    """
    edges = tuple(edges)
    kept: list[Sample] = []
    for (probe, _), found in _series(samples).items():
        k = every.get(probe, 1)
        wanted = {0, len(found) - 1}
        if k == 1 or any(sample.values != found[0].values for sample in found):
            stamps = [sample.at_s for sample in found]
            after = (bisect.bisect_left(stamps, edge) for edge in edges)
            wanted |= {i for j in after for i in (j - 1, j) if 0 <= i < len(found)}
            wanted |= set(range(0, len(found), k))
        kept += (found[i] for i in sorted(wanted))
    return sorted(kept, key=lambda s: s.at_s)


def _series(samples: Sequence[Sample]) -> dict[tuple[str, tuple[tuple[str, str], ...]], list[Sample]]:
    """Samples in the order of time, by probe and labels."""
    series: dict[tuple[str, tuple[tuple[str, str], ...]], list[Sample]] = {}
    for sample in sorted(samples, key=lambda s: s.at_s):
        series.setdefault((sample.probe, tuple(sorted(sample.labels.items()))), []).append(sample)
    return series


def trim(run: store.Run, out: Path, limit_bytes: int) -> dict[str, int]:
    """Writes the golden folder; returns the k of each probe. ValueError when nothing makes it fit."""
    words = private_words(run.facts)
    facts = without_paths(msgspec.to_builtins(run.facts), words)
    files = {
        "run.json": msgspec.json.encode(facts) + b"\n",
        "requests.jsonl": _lines(
            tree | {"error": without_paths(tree["error"], words)}
            for tree in map(msgspec.to_builtins, run.read_requests())
        ),
        "expected.json": msgspec.json.format(msgspec.json.encode(judged(run)), indent=1) + b"\n",
    }
    samples = run.read_samples()
    lines = {id(s): _lines([without_paths(msgspec.to_builtins(s), words)]) for s in samples}
    edges = [edge for phase in run.facts.phases for edge in (phase.start_s, phase.end_s)]
    counting = {metric.probe for metric in run.facts.metrics if metric.kind == "counter"}
    every: dict[str, int] = {}
    kept = thin(samples, edges, every)
    while sum(map(len, files.values())) + sum(len(lines[id(s)]) for s in kept) > limit_bytes:
        sizes = _sizes(kept, lines, counting)
        free = [p for p in sizes if p not in CHILD_TELEMETRY and every.get(p, 1) < len(samples)]
        if not free:
            raise ValueError(f"{out}: larger than {limit_bytes} bytes even with hardly any sample")
        probe = max(free, key=lambda p: sizes[p])
        every[probe] = 1 + int(1.2 * every.get(probe, 1))
        kept = thin(samples, edges, every)
    files["samples.jsonl"] = b"".join(lines[id(s)] for s in kept)
    out.mkdir(parents=True)
    for name, content in files.items():
        (out / name).write_bytes(content)
    return every


def _sizes(kept: Sequence[Sample], lines: Mapping[int, bytes], counting: set[str]) -> dict[str, float]:
    """Bytes by probe. A counter's gain survives any thinning, so counters weigh five times as much."""
    sizes: dict[str, float] = {}
    for sample in kept:
        weight = 5 if sample.probe in counting else 1
        sizes[sample.probe] = sizes.get(sample.probe, 0) + weight * len(lines[id(sample)])
    return sizes


def _lines(trees: Iterable[Any]) -> bytes:
    return b"".join(msgspec.json.encode(compact(tree)) + b"\n" for tree in trees)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="a run folder, its name, or `latest`")
    parser.add_argument("out", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--limit", type=int, default=300, metavar="KB")
    arguments = parser.parse_args()
    run = store.open_run(arguments.run)
    every = trim(run, arguments.out, arguments.limit * 1000)
    before, after = judged(run), judged(store.open_run(arguments.out))
    size = sum(file.stat().st_size for file in arguments.out.iterdir())
    thinned = ", ".join(f"every {k}. of {probe}" for probe, k in sorted(every.items())) or "nothing left out"
    print(f"{arguments.out}: {size / 1000:.0f} kB, {thinned}")
    print(f"whole    {before}\ntrimmed  {after}")
    return int(before != after)


if __name__ == "__main__":
    sys.exit(main())
