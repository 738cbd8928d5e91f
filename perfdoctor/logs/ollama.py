"""Lines of ollama. It loads a model when the first request asks for it, and then this is that request's time.

Its runner writes the layers it put on the GPU as llama.cpp does.
"""

from __future__ import annotations

import re

from perfdoctor.logs._line import Lines, Pattern, says

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
        Pattern("ready", "runner started in", re.compile("runner started in")),
    ),
)
