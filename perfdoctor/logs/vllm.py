"""Lines of vLLM, before and since its version 1 engine (checked against logs of 0.4 to 0.29).

Its version 1 engine tells of no preemption as it happens; the clause `Preemptions:` of its statistics is
written by few versions. No line about them is no statement that there were none.
"""

from __future__ import annotations

import re

from perfdoctor.logs._line import GIB, Pattern

_PERCENT = {"kv_usage": 0.01, "prefix_hit_share": 0.01}
_N = r"\d[\d,]*(?:\.\d+)?"


def _says(text: str) -> re.Pattern[str]:
    return re.compile(text.replace("<N>", _N))


SAYS = (
    Pattern("statistics", " reqs", _says(r"Running: (?P<running><N>) reqs")),
    Pattern("statistics", " reqs", _says(r"(?:Waiting|Pending): (?P<waiting><N>) reqs")),
    Pattern(
        "statistics",
        "KV cache usage: ",
        _says(r"(?<!CPU )KV cache usage: (?P<kv_usage><N>)%"),
        units=_PERCENT,
    ),
    Pattern(
        "statistics",
        "generation throughput: ",
        _says(r"generation throughput: (?P<generation_tokens_per_s><N>) tokens/s"),
    ),
    Pattern(
        "statistics",
        "prompt throughput: ",
        _says(r"prompt throughput: (?P<prompt_tokens_per_s><N>) tokens/s"),
    ),
    Pattern(
        "statistics",
        "Prefix cache hit rate: ",
        _says(r"Prefix cache hit rate: (?P<prefix_hit_share><N>)%"),
        units=_PERCENT,
    ),
    Pattern("preemption", "Preemptions: ", _says(r"reqs.*Preemptions: (?P<preemptions>\d+)")),
    Pattern("preemption", " Swapped: ", re.compile(r"Swapped: \d+ reqs, Pending: ")),
    # one line for 50 of them, with the count since the server started
    Pattern(
        "preemption",
        " is preempted by ",
        _says(r" is preempted by .*cumulative_preemption(?:_cnt)?=(?P<preemptions_total>\d+)"),
    ),
    Pattern(
        "begin", "vLLM API server version", re.compile(r"vLLM API server version v?(?P<version>[\w.+]+)")
    ),
    Pattern(
        "begin",
        " LLM engine (v",
        re.compile(r"Initializing an? (?:V1 )?LLM engine \(v(?P<version>[\w.+]+)\)"),
    ),
    Pattern(
        "fact",
        " LLM engine (v",
        re.compile(r"enforce_eager=(?P<eager>True|False)"),
        flags={"eager": "True"},
    ),
    Pattern("open", "Starting to load model", re.compile("Starting to load model"), step="model"),
    Pattern(
        "step", "Loading weights took", _says(r"Loading weights took (?P<seconds><N>) s"), step="weights"
    ),
    Pattern(
        "step",
        "Model loading took",
        _says(r"Model loading took (?P<weights_bytes><N>) Gi?B(?: memory)?(?: and (?P<seconds><N>) s)?"),
        step="model",
        units={"weights_bytes": GIB},
    ),
    Pattern(
        "step",
        "Loading model weights took",
        _says(r"Loading model weights took (?P<weights_bytes><N>) GB(?: and (?P<seconds><N>) s)?"),
        step="model",
        units={"weights_bytes": GIB},
    ),
    Pattern(
        "step", "torch.compile t", _says(r"torch\.compile t(?:akes|ook) (?P<seconds><N>) s"), step="compile"
    ),
    Pattern(
        "step", "Memory profiling takes", _says(r"Memory profiling takes (?P<seconds><N>) s"), step="profile"
    ),
    Pattern("step", "warmup run took", _says(r"profiling/warmup run took (?P<seconds><N>) s"), step="warmup"),
    Pattern(
        "step",
        "Graph capturing finished",
        _says(r"Graph capturing finished in (?P<seconds><N>) secs, took (?P<graph_bytes>-?<N>) GiB"),
        step="graph",
        units={"graph_bytes": GIB},
    ),
    Pattern(
        "step",
        "init engine (profile",
        _says(r"init engine \(profile, create kv cache, warmup model\) took (?P<seconds><N>) s"),
        step="engine",
    ),
    Pattern(
        "fact",
        "Available KV cache memory",
        _says(r"Available KV cache memory: (?P<kv_bytes><N>) GiB"),
        units={"kv_bytes": GIB},
    ),
    Pattern(
        "fact",
        "reserved for KV Cache is",
        _says(r"reserved for KV Cache is (?P<kv_bytes><N>)GiB"),
        units={"kv_bytes": GIB},
    ),
    Pattern("fact", "KV cache size: ", _says(r"(?<!CPU )KV cache size: (?P<kv_tokens><N>) tokens")),
    Pattern(
        "fact",
        "Maximum concurrency for",
        _says(
            r"Maximum concurrency for (?P<request_tokens><N>) tokens per request: (?P<kv_concurrency><N>)x"
        ),
    ),
)
