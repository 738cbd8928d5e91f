"""What a rule is made of: limits with their sources, combined in three-valued logic.

A condition is true (hit), false (clear) or not decidable (unknown), and always says why. A missing signal
never counts as either side:

    all_of   clear if any part is clear, else unknown if any is unknown, else hit
    any_of   hit if any part is hit, else unknown if any is unknown, else clear
    first_known   the first part that is not unknown: alternatives by what can be measured here
    only_shows   its part, which can show a state and never rule it out: clear becomes unknown
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from perfdoctor import units
from perfdoctor.diagnosis.measure import Table
from perfdoctor.model import Evidence, RuleStatus

_COMPARED = {"below": "below", "at_least": "at least"}


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` says what decided. `missing` holds (signal, why) of an unknown; `evidence` supports a hit."""

    status: RuleStatus
    evidence: tuple[Evidence, ...] = ()
    text: str = ""
    missing: tuple[tuple[str, str], ...] = ()

    @property
    def reason(self) -> str:
        """One line: what decided, or which signals are missing, those with the same cause together."""
        causes: dict[str, list[str]] = {}
        for name, why in self.missing:
            causes.setdefault(why, []).append(name)
        lines = [
            f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} missing: {why}"
            for why, names in causes.items()
        ]
        return "; ".join([self.text] * bool(self.text) + lines)


class Condition(Protocol):
    def test(self, table: Table) -> Answer: ...

    def limits(self) -> Iterator[Limit]: ...


@dataclass(frozen=True, slots=True)
class Limit:
    """One signal compared with one number. `source` says where the number comes from; a guess says so."""

    signal: str
    comparison: Literal["below", "at_least"]
    limit: float
    source: str

    def test(self, table: Table) -> Answer:
        found = table.get(self.signal)
        if found is None or found.value is None:
            why = (found.missing if found else None) or "it was not measured"
            return Answer("unknown", missing=((self.signal, why),))
        below = found.value < self.limit
        if below == (self.comparison == "below"):
            evidence = Evidence(
                signal=self.signal,
                value=found.value,
                unit=found.unit,
                comparison=self.comparison,
                limit=self.limit,
                source=self.source,
            )
            return Answer("hit", (evidence,), self._text(found.value, found.unit))
        return Answer("clear", text=self._text(found.value, found.unit))

    def _text(self, value: float, unit: str) -> str:
        limit = units.quantity(self.limit, unit)
        return f"{self.signal} is {units.quantity(value, unit)} (limit: {_COMPARED[self.comparison]} {limit})"

    def limits(self) -> Iterator[Limit]:
        yield self


def below(signal: str, limit: float, *, source: str) -> Limit:
    """True when the signal is under the limit; the limit itself is not under it."""
    return Limit(signal, "below", limit, source)


def at_least(signal: str, limit: float, *, source: str) -> Limit:
    """True from the limit upward."""
    return Limit(signal, "at_least", limit, source)


@dataclass(frozen=True, slots=True)
class _Group:
    parts: tuple[Condition, ...]

    def limits(self) -> Iterator[Limit]:
        for part in self.parts:
            yield from part.limits()

    def _answers(self, table: Table) -> list[Answer]:
        return [part.test(table) for part in self.parts]


@dataclass(frozen=True, slots=True)
class _AllOf(_Group):
    def test(self, table: Table) -> Answer:
        answers = self._answers(table)
        for status in ("clear", "unknown"):
            for answer in answers:
                if answer.status == status:
                    return answer
        return Answer("hit", tuple(e for a in answers for e in a.evidence), _texts(answers))


@dataclass(frozen=True, slots=True)
class _AnyOf(_Group):
    def test(self, table: Table) -> Answer:
        answers = self._answers(table)
        hits = [a for a in answers if a.status == "hit"]
        if hits:
            return Answer("hit", tuple(e for a in hits for e in a.evidence), _texts(hits))
        for answer in answers:
            if answer.status == "unknown":
                return answer
        return Answer("clear", text=_texts(answers))


@dataclass(frozen=True, slots=True)
class _FirstKnown(_Group):
    def test(self, table: Table) -> Answer:
        answers = self._answers(table)
        for answer in answers:
            if answer.status != "unknown":
                return answer
        return Answer("unknown", text=_texts(answers), missing=tuple(m for a in answers for m in a.missing))


@dataclass(frozen=True, slots=True)
class _OnlyShows:
    part: Condition
    why: str

    def limits(self) -> Iterator[Limit]:
        yield from self.part.limits()

    def test(self, table: Table) -> Answer:
        answer = self.part.test(table)
        if answer.status == "clear":
            return Answer("unknown", text=f"{answer.text} rules nothing out: {self.why}")
        return answer


def _texts(answers: list[Answer]) -> str:
    return "; ".join(dict.fromkeys(a.text for a in answers if a.text))


def all_of(*parts: Condition) -> Condition:
    """Every part must be true."""
    return _AllOf(parts)


def any_of(*parts: Condition) -> Condition:
    """One true part is enough; all must be known to be false before it is false."""
    return _AnyOf(parts)


def first_known(*parts: Condition) -> Condition:
    """Alternatives in order of trust, for machines that cannot measure the first."""
    return _FirstKnown(parts)


def only_shows(part: Condition, *, why: str) -> Condition:
    """Evidence in one direction. `why` says what stays unseen when it is false."""
    return _OnlyShows(part, why)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another cause that looks alike. Excluded when `when` is false, by the number that made it false.

    While it is true or not decidable, the finding is a pattern only (low confidence). `refutes`: when it is
    true, the rule does not hit at all. `instead`: how the finding is worded then; its fixes would not help.
    """

    name: str
    when: Condition
    refutes: bool = False
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A failing state. The module's docstring is its page; this is everything a machine needs of it.

    `cost` names the ledger rows whose time the state explains. `says` are parts of the summary with
    `{signal}` in place of numbers; a part is left out when one of its signals is missing. `experiment` is
    what must hold for high confidence: an intervention that moved a number as predicted. `explains` names the
    rules whose state follows from this one: their findings stand below it.
    """

    cls: str
    title: str
    when: Condition
    cost: tuple[str, ...] = ()
    of: Literal["request", "load", "measurement"] = "request"
    told_apart: tuple[Neighbour, ...] = ()
    support: tuple[Condition, ...] = ()
    experiment: Condition | None = None
    only_alone: bool = False
    explains: tuple[str, ...] = ()
    says: tuple[str, ...] = ()

    def limits(self) -> tuple[Limit, ...]:
        """The limits that decide, in order, for `explain`."""
        return tuple(self.when.limits())
