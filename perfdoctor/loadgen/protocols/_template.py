"""Request bodies with holes: `{{name}}` is filled in for each request. Pure.

    {{id}}            the request's number, from 1
    {{uuid}}          a random UUID, the same wherever it stands in one request
    {{random(a,b)}}   a number from a to b: whole if both are, both ends included; drawn anew at each place
    {{prompt}}        the prompt's text; {{messages}}: the conversation as a JSON list of role and content
    {{max_tokens}}, {{model}}
    {{column}}        of the row of --prompts FILE
    {{NAME_json}}     any of them as JSON: {{prompt_json}} brings its quotes and escapes

All is drawn from the load's seed and the request's number, so that a run can be repeated byte for byte.
"""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass

import msgspec

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.protocols._protocol import Ask

BUILT_IN = ("id", "max_tokens", "messages", "model", "prompt", "uuid")
_HOLE = re.compile(r"\{\{([^{}]*)\}\}")
_RANDOM = re.compile(r"random\(\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*\)")
_JSON = "_json"


@dataclass(frozen=True, slots=True)
class Template:
    """Texts and the holes between them; one text more than holes."""

    texts: tuple[str, ...]
    holes: tuple[str, ...]

    def fill(self, values: Values, quote: Callable[[str], str] = str) -> str:
        """`quote` makes a value fit for where the template stands, such as a URL."""
        filled = [self.texts[0]]
        for hole, text in zip(self.holes, self.texts[1:], strict=True):
            filled += (quote(values.of(hole)), text)
        return "".join(filled)


class Values:
    """What the holes of one request's templates are filled with."""

    def __init__(self, ask: Ask, seed: int) -> None:
        self._ask = ask
        self._rng = random.Random((seed << 40) + ask.number)
        self._uuid = ""

    def of(self, hole: str) -> str:
        if hole.endswith(_JSON) and hole not in self._ask.variables:
            return msgspec.json.encode(self._value(hole.removesuffix(_JSON))).decode()
        return self._value(hole)

    def _value(self, name: str) -> str:
        ask = self._ask
        if name in ask.variables:
            return ask.variables[name]
        if drawn := _RANDOM.fullmatch(name):
            return self._random(*drawn.groups())
        if name == "uuid":
            self._uuid = self._uuid or str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
            return self._uuid
        if name == "prompt":
            return "\n".join(text for _, text in ask.messages)
        if name == "messages":
            turns = [{"role": role, "content": text} for role, text in ask.messages]
            return msgspec.json.encode(turns).decode()
        return str({"id": ask.number, "max_tokens": ask.max_tokens, "model": ask.model}[name])

    def _random(self, low: str, high: str) -> str:
        if "." in low + high:
            return f"{self._rng.uniform(float(low), float(high)):.6g}"
        return str(self._rng.randint(*sorted((int(low), int(high)))))


def parse_template(text: str, columns: Collection[str], where: str) -> Template:
    """UsageError for a hole that nothing fills. `columns`: the variables that every prompt brings."""
    pieces = _HOLE.split(text)
    holes = tuple(hole.strip() for hole in pieces[1::2])
    for hole in holes:
        if not _fillable(hole, columns):
            known = ", ".join((*BUILT_IN, "random(a,b)", *sorted(columns)))
            raise UsageError(
                f"{where} asks for {{{{{hole}}}}}, and there is no such variable",
                f"Known are: {known}; and each with _json at its end.",
                "correct the name, or give the column in --prompts FILE",
            )
    return Template(tuple(pieces[::2]), holes)


def _fillable(hole: str, columns: Collection[str]) -> bool:
    names = {*columns, *BUILT_IN}
    return hole in names or hole.removesuffix(_JSON) in names or bool(_RANDOM.fullmatch(hole))
