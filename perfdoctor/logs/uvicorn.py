"""The web server below vLLM, SGLang and many others: it answers from this line on."""

from __future__ import annotations

import re

from perfdoctor.logs._line import Lines, Pattern

SAYS = Lines(
    None, (Pattern("ready", "Application startup complete", re.compile("Application startup complete")),)
)
