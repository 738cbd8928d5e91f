"""One loaded model that is run in different ways in turn, without being loaded again.

What a switch made of a model is kept, so that its compiled step and its cache are there when its turn comes
again. Switches that are no matter of the loaded model (`live` False) stay as they were at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from perfdoctor.errors import ModelError
from perfdoctor.local.load import LoadedModel
from perfdoctor.local.switches._choose import applied, known
from perfdoctor.local.switches._switch import Plan


@dataclass(frozen=True, slots=True)
class _Way:
    """What of a model makes a variant: the plan, a forward of its own, the kernel of attention."""

    plan: Plan
    forward: Any  # None: that of its class
    attention: str


class Variants:
    """Of a model as it was loaded, before any switch."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._loaded = loaded
        self._seen: dict[str, _Way] = {}
        self._plain = self._now = self._look(loaded.plan)
        self._fixed: Mapping[str, str] | None = None

    def use(self, settings: Mapping[str, str]) -> tuple[LoadedModel, bool]:
        """The model with these switches and no others, and whether for the first time.

        ModelError leaves it as it was.
        """
        self._check(settings)
        key, fresh = repr(sorted(settings.items())), False
        before = self._now
        if key not in self._seen:
            try:
                self._put(self._plain)
                plan = applied(self._loaded.model, dict(settings), self._loaded.cuda)
                self._seen[key], fresh = self._look(plan), True
            except BaseException:
                self._put(before)
                raise
        self._put(self._seen[key])
        return replace(self._loaded, plan=self._now.plan), fresh

    def _check(self, settings: Mapping[str, str]) -> None:
        switches = known()
        fixed = {n: v for n, v in settings.items() if n in switches and not switches[n].live}
        if self._fixed is None:
            self._fixed = fixed
        if fixed != self._fixed:
            names = ", ".join(sorted({*fixed, *self._fixed}))
            raise ModelError(
                f"the setting {names} cannot be changed while the model is loaded", "", "start anew"
            )

    def _look(self, plan: Plan) -> _Way:
        model = self._loaded.model
        return _Way(plan, model.__dict__.get("forward"), model.config._attn_implementation)

    def _put(self, way: _Way) -> None:
        model = self._loaded.model
        model.__dict__.pop("forward", None)
        if way.forward is not None:
            model.forward = way.forward
        if model.config._attn_implementation != way.attention:
            model.set_attn_implementation(way.attention)
        self._now = way
