"""Lines of vLLM, before and since its version 1 engine (checked against logs of 0.4 to 0.29).

Its version 1 engine tells of no preemption as it happens; the clause `Preemptions:` of its statistics is
written by few versions. No line about them is no statement that there were none.
"""

from __future__ import annotations

import re

from perfdoctor.logs._line import GIB, Lines, Pattern, says

_PERCENT = {"kv_usage": 0.01, "prefix_hit_share": 0.01}


SAYS = Lines(
    "vllm",
    (
        Pattern("statistics", " reqs", says(r"Running: (?P<running><N>) reqs")),
        Pattern("statistics", " reqs", says(r"(?:Waiting|Pending): (?P<waiting><N>) reqs")),
        Pattern(
            "statistics",
            "KV cache usage: ",
            says(r"(?<!CPU )KV cache usage: (?P<kv_usage><N>)%"),
            units=_PERCENT,
        ),
        Pattern(
            "statistics",
            "generation throughput: ",
            says(r"generation throughput: (?P<generation_tokens_per_s><N>) tokens/s"),
        ),
        Pattern(
            "statistics",
            "prompt throughput: ",
            says(r"prompt throughput: (?P<prompt_tokens_per_s><N>) tokens/s"),
        ),
        Pattern(
            "statistics",
            "Prefix cache hit rate: ",
            says(r"Prefix cache hit rate: (?P<prefix_hit_share><N>)%"),
            units=_PERCENT,
        ),
        Pattern("preemption", "Preemptions: ", says(r"reqs.*Preemptions: (?P<preemptions>\d+)")),
        Pattern("preemption", " Swapped: ", re.compile(r"Swapped: \d+ reqs, Pending: ")),
        # one line for 50 of them, with the count since the server started
        Pattern(
            "preemption",
            " is preempted by ",
            says(r" is preempted by .*cumulative_preemption(?:_cnt)?=(?P<preemptions_total>\d+)"),
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
            "step", "Loading weights took", says(r"Loading weights took (?P<seconds><N>) s"), step="weights"
        ),
        Pattern(
            "step",
            "Model loading took",
            says(r"Model loading took (?P<weights_bytes><N>) Gi?B(?: memory)?(?: and (?P<seconds><N>) s)?"),
            step="model",
            units={"weights_bytes": GIB},
        ),
        Pattern(
            "step",
            "Loading model weights took",
            says(r"Loading model weights took (?P<weights_bytes><N>) GB(?: and (?P<seconds><N>) s)?"),
            step="model",
            units={"weights_bytes": GIB},
        ),
        Pattern(
            "step",
            "torch.compile t",
            says(r"torch\.compile t(?:akes|ook) (?P<seconds><N>) s"),
            step="compile",
        ),
        Pattern(
            "step",
            "Memory profiling takes",
            says(r"Memory profiling takes (?P<seconds><N>) s"),
            step="profile",
        ),
        Pattern(
            "step", "warmup run took", says(r"profiling/warmup run took (?P<seconds><N>) s"), step="warmup"
        ),
        Pattern(
            "step",
            "Graph capturing finished",
            says(r"Graph capturing finished in (?P<seconds><N>) secs, took (?P<graph_bytes>-?<N>) GiB"),
            step="graph",
            units={"graph_bytes": GIB},
        ),
        Pattern(
            "step",
            "init engine (profile",
            says(r"init engine \(profile, create kv cache, warmup model\) took (?P<seconds><N>) s"),
            step="engine",
        ),
        Pattern(
            "fact",
            "Available KV cache memory",
            says(r"Available KV cache memory: (?P<kv_bytes><N>) GiB"),
            units={"kv_bytes": GIB},
        ),
        Pattern(
            "fact",
            "reserved for KV Cache is",
            says(r"reserved for KV Cache is (?P<kv_bytes><N>)GiB"),
            units={"kv_bytes": GIB},
        ),
        Pattern("fact", "KV cache size: ", says(r"(?<!CPU )KV cache size: (?P<kv_tokens><N>) tokens")),
        Pattern(
            "fact",
            "Maximum concurrency for",
            says(
                r"Maximum concurrency for (?P<request_tokens><N>) tokens per request: "
                r"(?P<kv_concurrency><N>)x"
            ),
        ),
    ),
)
