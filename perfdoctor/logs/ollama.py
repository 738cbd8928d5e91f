"""Lines of ollama. It loads a model when the first request asks for it, and then this is that request's time.

Its runner writes the layers it put on the GPU as llama.cpp does.
"""

from __future__ import annotations

import re

from perfdoctor.logs._line import MS, Lines, Pattern, says

SAYS = Lines(
    "ollama",
    (
        Pattern("begin", 'msg="starting ', re.compile(r'msg="starting (?:\w+ )*(?:runner|server)"')),
        Pattern(
            "step",
            "runner started in",
            says("runner started in (?P<seconds><N>) seconds"),
            step="runner",
        ),
        Pattern(
            "fact",
            "layers.offload=",
            re.compile(r"layers\.model=(?P<layers>\d+) layers\.offload=(?P<gpu_layers>\d+)"),
        ),
        Pattern(
            "progress", "load progress", says(r"model load progress (?P<loaded_share><N>)"), step="runner"
        ),
        # 20.86s, 1m2.5s or 829.3ms, of the requests that generate
        Pattern(
            "request",
            "| POST ",
            says(
                r"\| 2\d\d \|\s+(?:(?P<total_s__m>\d+)m)?"
                r"(?:(?P<total_s><N>)s|(?P<total_s__ms><N>)ms) \|.*POST\s+"
                r'"/(?:api/(?:chat|generate)|v1/(?:chat/)?completions|v1/responses)"'
            ),
            units={"total_s__m": 60.0, "total_s__ms": MS},
        ),
        Pattern("ready", "runner started in", re.compile("runner started in")),
    ),
)
