"""Lengths in tokens: a number, or a distribution to draw one from for each request. Pure."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass

from perfdoctor.errors import UsageError

LONGEST = 10_000_000  # tokens; the longest contexts there are
_NUMBER = re.compile(r"\s*[0-9]{1,9}\s*")
_CALL = re.compile(r"\s*([a-z]+)\s*\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*\)\s*")
_EXAMPLES = "48, uniform(32,96), normal(48,12) or lognormal(48,0.6)"


@dataclass(frozen=True, slots=True)
class Lengths:
    """`kind` with its two parameters; every length drawn is a whole number from 1 to LONGEST.

    uniform(a,b): from a to b, both included. normal(m,s): mean and standard deviation, before what falls
    below 1 becomes 1. lognormal(m,s): median, and standard deviation of the logarithm. fixed: a is all.
    """

    kind: str
    a: float
    b: float = 0.0

    def draw(self, rng: random.Random) -> int:
        if self.kind == "fixed":
            return int(self.a)
        if self.kind == "uniform":
            return rng.randint(int(self.a), int(self.b))
        if self.kind == "normal":
            drawn = rng.gauss(self.a, self.b)
        else:
            drawn = self.a * math.exp(rng.gauss(0.0, self.b))
        return min(max(1, round(drawn)), LONGEST)

    @property
    def typical(self) -> int:
        """Half of the lengths are below it."""
        return round((self.a + self.b) / 2 if self.kind == "uniform" else self.a)


def parse_lengths(text: int | str, flag: str) -> Lengths:
    """UsageError, naming the flag, for what is no length or distribution."""
    if isinstance(text, int) or _NUMBER.fullmatch(text):
        return _checked(Lengths("fixed", int(text)), text, flag)
    call = _CALL.fullmatch(text)
    if not call or call[1] not in ("uniform", "normal", "lognormal"):
        raise _wrong(text, flag, "A length is a whole number of tokens or one of three distributions.")
    try:
        return _checked(Lengths(call[1], float(call[2]), float(call[3])), text, flag)
    except ValueError as error:
        raise _wrong(text, flag, "Its parameters are not numbers.") from error


def _checked(lengths: Lengths, text: int | str, flag: str) -> Lengths:
    if not 1 <= lengths.a <= LONGEST:
        raise _wrong(text, flag, f"Its first number must be from 1 to {LONGEST}.")
    if lengths.kind == "uniform":
        if not lengths.a <= lengths.b <= LONGEST or not (lengths.a.is_integer() and lengths.b.is_integer()):
            raise _wrong(text, flag, "Its ends must be whole numbers, the smaller first.")
    elif not 0 <= lengths.b <= (3.0 if lengths.kind == "lognormal" else LONGEST):
        raise _wrong(text, flag, "Its second number, the spread, is out of range (lognormal: 0 to 3).")
    return lengths


def _wrong(text: int | str, flag: str, why: str) -> UsageError:
    return UsageError(f"{flag} {text} is no length", why, f"write for example {_EXAMPLES}")
