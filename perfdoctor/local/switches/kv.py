"""Whether the keys and values of earlier tokens are kept at all.

`off` computes them anew for each token, as one guide advises to save memory. It is here to be refuted: the
time of a token then grows with the length of the text.
"""

from __future__ import annotations

from typing import Any

from perfdoctor.local.switches._switch import Plan, Switch


def _apply(_: Any, plan: Plan, __: str) -> None:
    plan.config["use_cache"] = False


SWITCH = Switch(values=("off",), apply=_apply, excludes=("cache", "compile", "graph"))
