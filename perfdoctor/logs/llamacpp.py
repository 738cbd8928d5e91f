"""Lines of llama.cpp's server (checked against 2024 to its build of 2026-10, the last by a run of our own).

Times of a request stand on three lines, each of them read by itself.
"""

from __future__ import annotations

import re

from perfdoctor.logs._line import MIB, MS, Lines, Pattern, says

_MS = dict.fromkeys(("prefill_s", "decode_s", "total_s"), MS)


SAYS = Lines(
    "llama.cpp",
    (
        Pattern(
            "request",
            "prompt eval time",
            says(r"prompt eval time =\s*(?P<prefill_s><N>) ms /\s*(?P<prompt_tokens>\d+) tokens"),
            units=_MS,
        ),
        Pattern(
            "request",
            "eval time",
            says(
                r"(?<!prompt )eval time =\s*(?P<decode_s><N>) ms /\s*(?P<output_tokens>\d+) (?:tokens|runs)"
            ),
            units=_MS,
        ),
        Pattern(
            "request", "total time", says(r"total time =\s*(?P<total_s><N>) ms /\s*\d+ tokens"), units=_MS
        ),
        Pattern("begin", "init: initializing ...", re.compile(r"init: initializing \.\.\.")),
        Pattern("open", "loading model", re.compile(r"(?:main|init): loading model\b"), step="model"),
        Pattern("step", "model loaded", re.compile(r"(?:main|init): model loaded"), step="model"),
        Pattern(
            "fact", "layers to GPU", says(r"offloaded (?P<gpu_layers>\d+)/(?P<layers>\d+) layers to GPU")
        ),
        Pattern("fact", "n_slots", says(r"n_slots = (?P<most_running>\d+)")),
        Pattern("fact", "n_ctx_slot", says(r"initializing, .*n_ctx_slot = (?P<request_tokens>\d+)")),
        Pattern(
            "fact",
            "KV buffer size",
            says(r"KV buffer size =\s*(?P<kv_bytes><N>) MiB"),
            units={"kv_bytes": MIB},
        ),
        Pattern("ready", "listening on", re.compile(r"(?:main|init|server)[:]? (?:server is )?listening on")),
    ),
)
