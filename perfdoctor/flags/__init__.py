"""Flags by group, and the way from them to the orders of a run. Imports nothing heavy."""

from perfdoctor.flags._flag import Flag, Given, group, lay_over, takes
from perfdoctor.flags._orders import orders, scenario_of, secret_of
from perfdoctor.flags.load import LIMITS, LOAD, PROMPTS, SCENARIO, SHAPE, SLO
from perfdoctor.flags.target import ADDRESS, TARGET, WIRE

__all__ = [
    "ADDRESS", "LIMITS", "LOAD", "PROMPTS", "SCENARIO", "SHAPE", "SLO", "TARGET", "WIRE", "Flag", "Given",
    "group", "lay_over", "orders", "scenario_of", "secret_of", "takes",
]  # fmt: skip
