"""Trims a run folder to what judging needs, so that it can be kept as a golden run.

    python -m tests.golden.trim RUN OUT [--limit 300]      limit in kB, of all files together

Dropped: what is derived, log.txt, stacks.folded (nobody judges by them), nulls. Times are rounded to 1 us.
Every request stays. Of the samples every k-th of each probe and label set stays, with the first and last and
both neighbours of every edge of a phase, so that a counter's gain over a phase is what it was; k is the
smallest that fits. What the local server told of itself stays whole. Host name, foreign URLs and absolute
paths are replaced. Ends with 1 when the trimmed run is judged otherwise than the whole one.
"""

from __future__ import annotations

import argparse
import bisect
import re
import sys
from collections.abc import Iterable, Sequence
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


def thin(samples: Sequence[Sample], edges: Iterable[float], every: int) -> list[Sample]:
    """Every `every`-th of each series with its ends and the neighbours of each edge, in the order of time."""
    series: dict[tuple[str, tuple[tuple[str, str], ...]], list[Sample]] = {}
    for sample in sorted(samples, key=lambda s: s.at_s):
        series.setdefault((sample.probe, tuple(sorted(sample.labels.items()))), []).append(sample)
    kept: list[Sample] = []
    for (probe, _), found in series.items():
        wanted = set(range(0, len(found), 1 if probe in CHILD_TELEMETRY else every)) | {len(found) - 1}
        stamps = [sample.at_s for sample in found]
        for edge in edges:
            after = bisect.bisect_left(stamps, edge)
            wanted |= {i for i in (after - 1, after) if 0 <= i < len(found)}
        kept += (found[i] for i in sorted(wanted))
    return sorted(kept, key=lambda s: s.at_s)


def trim(run: store.Run, out: Path, limit_bytes: int) -> int:
    """Writes the golden folder; returns the k that was needed. ValueError when nothing makes it fit."""
    words = private_words(run.facts)
    facts = without_paths(msgspec.to_builtins(run.facts), words)
    samples = run.read_samples()
    edges = [edge for phase in run.facts.phases for edge in (phase.start_s, phase.end_s)]
    files = {
        "run.json": msgspec.json.encode(facts) + b"\n",
        "requests.jsonl": _lines(
            tree | {"error": without_paths(tree["error"], words)}
            for tree in map(msgspec.to_builtins, run.read_requests())
        ),
        "expected.json": msgspec.json.format(msgspec.json.encode(judged(run)), indent=1) + b"\n",
    }
    every = 1
    while True:
        kept = (msgspec.to_builtins(sample) for sample in thin(samples, edges, every))
        files["samples.jsonl"] = _lines(without_paths(tree, words) for tree in kept)
        if sum(map(len, files.values())) <= limit_bytes:
            break
        if every > len(samples):
            raise ValueError(f"{out}: larger than {limit_bytes} bytes even with hardly any sample")
        every += 1
    out.mkdir(parents=True)
    for name, content in files.items():
        (out / name).write_bytes(content)
    return every


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
    print(f"{arguments.out}: {size / 1000:.0f} kB, every {every}. sample")
    print(f"whole    {before}\ntrimmed  {after}")
    return int(before != after)


if __name__ == "__main__":
    sys.exit(main())
