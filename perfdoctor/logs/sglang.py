"""Lines of SGLang (checked against logs of 0.4 to 0.5)."""

from __future__ import annotations

import re

from perfdoctor.logs._line import GIB, Lines, Pattern, says

_GB = dict.fromkeys(
    ("weights_bytes", "graph_bytes", "kv_bytes__k", "kv_bytes__v"), GIB
)  # it divides by 2**30


SAYS = Lines(
    "sglang",
    (
        Pattern("statistics", "#running-req", says(r"#running-req: (?P<running>\d+)")),
        Pattern("statistics", "#queue-req", says(r"#queue-req: (?P<waiting>\d+)")),
        # of models with a sliding window a second pool has its own, `swa token usage`
        Pattern("statistics", "token usage: ", says(r"(?:(?<=, )|(?<=full ))token usage: (?P<kv_usage><N>)")),
        Pattern(
            "statistics",
            "gen throughput",
            says(r"gen throughput \(token/s\): (?P<generation_tokens_per_s><N>)"),
        ),
        Pattern(
            "statistics",
            "input throughput",
            says(r"input throughput \(token/s\): (?P<prompt_tokens_per_s><N>)"),
        ),
        Pattern(
            "statistics",
            "Decode batch",
            re.compile(r"cuda graph: (?P<cuda_graph>True|False)"),
            flags={"cuda_graph": "True"},
        ),
        Pattern("preemption", "#retracted_reqs", says(r"#retracted_reqs: (?P<preemptions>\d+)")),
        Pattern("preemption", " batch", re.compile(r"(?:Decode|Prefill) batch[.,]")),
        Pattern("begin", "server_args=ServerArgs(", re.compile(r"server_args=ServerArgs\(")),
        Pattern(
            "fact",
            "disable_cuda_graph=",
            re.compile(r"disable_cuda_graph=(?P<eager>True|False)"),
            flags={"eager": "True"},
        ),
        Pattern("open", "Load weight begin", re.compile("Load weight begin"), step="model"),
        Pattern(
            "step",
            "Load weight end",
            says(
                r"Load weight end\.(?: elapsed=(?P<seconds><N>) s\b)?"
                r"(?:.*mem usage=(?P<weights_bytes><N>) GB)?"
            ),
            step="model",
            units=_GB,
        ),
        Pattern(
            "step",
            "graph end.",
            says(
                r"[Cc]apture .*graph end\. (?:Time elapsed:|elapsed=)\s*(?P<seconds><N>) s"
                r"(?:[.,] mem usage=(?P<graph_bytes><N>) GB)?"
            ),
            step="graph",
            units=_GB,
        ),
        Pattern(
            "fact",
            "KV Cache is allocated",
            says(
                r"(?:#tokens: (?P<kv_tokens>\d+), )?"
                r"K size: (?P<kv_bytes__k><N>) GB, V size: (?P<kv_bytes__v><N>) GB"
            ),
            units=_GB,
        ),
        Pattern("fact", "max_total_num_tokens=", says(r"max_total_num_tokens=(?P<kv_tokens>\d+)")),
        Pattern("fact", "max_running_requests=", says(r"max_running_requests=(?P<most_running>\d+)")),
        Pattern("ready", "ready to roll", re.compile("The server is fired up and ready to roll")),
    ),
)
