"""Checks the switches that were asked for, and applies them in the order in which they need one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfdoctor import registry
from perfdoctor.errors import ModelError
from perfdoctor.local.switches._switch import Plan, Switch

PACKAGE = "perfdoctor.local.switches"


def known() -> dict[str, Switch]:
    return {name: switch for name, switch, _ in registry.discover(PACKAGE, "SWITCH")}


def check(asked: Mapping[str, str], cuda: bool | None = None) -> None:
    """ModelError when a name, a value or a combination is wrong. `cuda` None: the device is not known yet."""
    switches = known()
    for name, value in asked.items():
        if name not in switches:
            names = ", ".join(sorted(switches))
            raise ModelError(
                f"the local model has no setting '{name}'", f"known are {names}", "use one of them"
            )
        switch = switches[name]
        if value not in switch.values:
            what = f"'{value}' is no value of the setting '{name}'"
            raise ModelError(what, "", f"use one of: {', '.join(switch.values)}")
        if wrong := _conflict(switch, asked):
            raise ModelError(f"the setting '{name}={value}' does not work like this", *wrong)
        if switch.cuda and cuda is False:
            raise ModelError(f"the setting '{name}={value}' needs a CUDA GPU", "", "leave it out on a CPU")


def _conflict(switch: Switch, asked: Mapping[str, str]) -> tuple[str, str] | None:
    """(why, what to do) when other settings do not go with this one."""
    for other, value in switch.needs.items():
        if asked.get(other) != value:
            return f"it needs {other}={value}", f"add {other}={value}"
    for other in switch.excludes:
        if other in asked:
            return f"it excludes {other}", f"leave out {other}"
    return None


def applied(model: Any, asked: Mapping[str, str], cuda: bool) -> Plan:
    """The plan of a loaded model; the model itself may be changed as well."""
    check(asked, cuda)
    plan, switches = Plan(), known()
    for name in sorted(asked, key=lambda name: len(switches[name].needs)):
        switches[name].apply(model, plan, asked[name])
    return plan
