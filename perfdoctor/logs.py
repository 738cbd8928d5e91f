"""Lines of servers' logs as numbers: statistics, preemptions, and what a start took. Pure, no files.

Lines of vLLM (before and since its version 1 engine), SGLang and ollama. Times of a start are wall-clock
seconds of one process; where several ranks print the same line, the slowest counts, since all wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

PREEMPTED = re.compile(r"is preempted by|Preempt(ed|ing) request|retract(ed|ing) (a )?req", re.IGNORECASE)
_NUMBER = r"(\d[\d,]*(?:\.\d+)?)"

# our name -> where it stands in a statistics line, and the factor to our unit
STATISTICS: dict[str, tuple[re.Pattern[str], float]] = {
    "running": (re.compile(r"Running: (\d+) reqs|#running-req: (\d+)"), 1.0),
    "waiting": (re.compile(r"(?:Waiting|Pending): (\d+) reqs|#queue-req: (\d+)"), 1.0),
    "kv_usage": (re.compile(r"KV cache usage: (\d+(?:\.\d+)?)\s*%"), 0.01),
    "token_usage": (re.compile(r"token usage: (\d(?:\.\d+)?)"), 1.0),
    "generation_tokens_per_s": (
        re.compile(r"generation throughput: (\d+(?:\.\d+)?)|gen throughput \(token/s\): (\d+(?:\.\d+)?)"),
        1.0,
    ),
}

# our name -> where a start says it, and the factor to our unit
START: dict[str, tuple[re.Pattern[str], float]] = {
    "weights_s": (
        re.compile(rf"Loading weights took {_NUMBER} seconds|Load weight end\. elapsed={_NUMBER} s"),
        1.0,
    ),
    "model_s": (re.compile(rf"Model loading took [\d.]+ Gi?B.* and {_NUMBER} s"), 1.0),
    "weights_bytes": (re.compile(rf"Model loading took {_NUMBER} Gi?B"), 2**30),
    "compile_s": (re.compile(rf"torch\.compile (?:takes|took) {_NUMBER} s"), 1.0),
    "graph_s": (
        re.compile(
            rf"Graph capturing finished in {_NUMBER} secs"
            rf"|Capture cuda graph end\. Time elapsed: {_NUMBER} s"
            rf"|Capture \S+ decode CUDA graph end\. elapsed={_NUMBER} s"
        ),
        1.0,
    ),
    "engine_s": (re.compile(rf"init engine \(.*\) took {_NUMBER} s"), 1.0),
    "runner_s": (re.compile(rf"llama runner started in {_NUMBER} seconds"), 1.0),
    "kv_tokens": (
        re.compile(rf"KV cache size: {_NUMBER} tokens|KV Cache is allocated\. #tokens: {_NUMBER}"),
        1.0,
    ),
    "kv_concurrency": (re.compile(rf"Maximum concurrency for .*: {_NUMBER}x"), 1.0),
}
_OFFLOADED = re.compile(r"offloaded (\d+)/(\d+) layers to GPU")
_EAGER = re.compile(r"enforce_eager=(True|False)|disable_cuda_graph=(True|False)")
_BEGINS = re.compile(
    r"Initializing an? (?:V\d )?LLM engine|server_args=ServerArgs|Load weight begin|starting.* runner"
)


def read_statistics(line: str) -> dict[str, float | None]:
    """The numbers of a statistics line; empty for any other."""
    found: dict[str, float | None] = dict(_numbers(line, STATISTICS))
    usage = found.pop("token_usage", None)
    if usage is not None:
        found.setdefault("kv_usage", usage)
    return found


def read_start(lines: Iterable[str]) -> dict[str, float]:
    """What the last start in a log says of itself; empty where none is in it.

    `model_s` holds `weights_s`; `engine_s` holds `compile_s` and `graph_s`. `eager`: graphs are off.
    """
    found: dict[str, float] = {}
    for line in lines:
        if _BEGINS.search(line):
            found = {} if "weights_s" in found or "runner_s" in found else found
        for name, value in _numbers(line, START).items():
            found[name] = max(value, found.get(name, value))
        layers = _OFFLOADED.search(line)
        if layers and int(layers[2]):
            found["on_host_share"] = 1 - int(layers[1]) / int(layers[2])
        eager = _EAGER.search(line)
        if eager:
            found["eager"] = float("True" in eager.groups())
    return found


def _numbers(line: str, patterns: dict[str, tuple[re.Pattern[str], float]]) -> dict[str, float]:
    found = {}
    for name, (pattern, factor) in patterns.items():
        match = pattern.search(line)
        if match:
            text = next(group for group in match.groups() if group is not None)
            found[name] = float(text.replace(",", "")) * factor
    return found
