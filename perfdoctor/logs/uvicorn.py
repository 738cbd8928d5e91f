"""The web server below vLLM, SGLang and many others: it answers from this line on."""

from __future__ import annotations

import re

from perfdoctor.logs._line import Pattern

SAYS = (Pattern("ready", "Application startup complete", re.compile("Application startup complete")),)
