"""What is to be tried, checked before anything is started."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from perfdoctor import units
from perfdoctor.diagnosis import catalogue
from perfdoctor.diagnosis.catalogue import Fix
from perfdoctor.errors import CannotTry, ModelError, UsageError
from perfdoctor.local import models
from perfdoctor.local.patient import LAUNCH
from perfdoctor.local.switches import _choose
from perfdoctor.model import Load, Scenario, TriedSide
from perfdoctor.probes import _host
from perfdoctor.verify._command import Command
from perfdoctor.verify._loading import is_of_loading

NEAR = 3
DURATION_S = 3.0
# Users by what a fix is for: requests that wait, twice the usual batch; requests that disturb each other. Of
# the pace of one answer, one.
USERS = (({"scheduling", "overload"}, 16), ({"event-loop", "tokenizer", "gil"}, 4))


@dataclass(frozen=True, slots=True)
class Plan:
    """Exactly one kind of sides: settings of the local model, commands, or endpoints.

    `scenario` holds the load of every run; its target's options are what both sides have in common.
    """

    name: str
    fix: Fix | None
    scenario: Scenario
    pairs: int
    before: TriedSide
    after: TriedSide
    commands: tuple[Command, Command] | None = None
    argv: tuple[str, ...] = ()
    out: Path | None = None
    secret: str | None = None
    ready_s: float = 600.0

    @property
    def load(self) -> Load:
        return self.scenario.load

    @property
    def of_loading(self) -> bool:
        """A run is then a start of the side, and what it takes to load the model."""
        return self.commands is None and not self.before.endpoint and is_of_loading(self.fix)


def find_fix(name: str) -> Fix:
    fixes = {fix.id: fix for fix in catalogue.load_fixes()}
    wanted = name.strip().lower().replace("_", "-").removesuffix(".md")
    if wanted in fixes:
        return fixes[wanted]
    near = difflib.get_close_matches(wanted, fixes, NEAR, 0.4) + [n for n in fixes if wanted and wanted in n]
    shown = ", ".join(list(dict.fromkeys(near))[:NEAR])
    raise UsageError(
        f"there is no fix '{name}'",
        f"The nearest names: {shown}." if shown else "No name is similar.",
        "`perfdoctor explain` lists all of them; or name both sides: --before 'CMD' --after 'CMD'",
    )


def of_settings(text: str, scenario: Scenario, users: int | None, pairs: int, **more: object) -> Plan:
    """Of settings that no fix names, as `cache=static,threads=1`."""
    words = [part.partition("=") for part in text.split(",")]
    found = {name.strip(): value.strip() for name, _, value in words}
    if not all(name and value for name, value in found.items()):
        raise UsageError(f"'{text}' are no settings", "Each is NAME=VALUE.", "write for example cache=static")
    options = scenario.target.options
    return _of_local(text, None, dict(options), {**options, **found}, scenario, users, pairs, **more)


def of_fix(fix: Fix, scenario: Scenario, users: int | None, pairs: int, **more: object) -> Plan:
    """Of a fix that is a setting of the local model. CannotTry says why it is none, or cannot be here."""
    options = scenario.target.options
    if not fix.switch and fix.verdict == "refuted":
        raise CannotTry(
            f"{fix.id} is refuted, and no setting of the local model",
            "Its program fails, or answers wrongly, or does what is done anyway.",
            f"read why: perfdoctor explain {fix.id}",
        )
    if not fix.switch:
        raise CannotTry(
            f"{fix.id} is no setting of the local model",
            "It changes another server, the machine, or a program of yours.",
            f"start both sides yourself: perfdoctor verify {fix.id} --before 'CMD' --after 'CMD'",
        )
    _check_device(fix, options)
    before, after = {**options, **fix.before}, {**options, **fix.switch}
    return _of_local(fix.id, fix, before, after, scenario, users, pairs, **more)


def _of_local(
    name: str,
    fix: Fix | None,
    before: dict[str, str],
    after: dict[str, str],
    scenario: Scenario,
    users: int | None,
    pairs: int,
    **more: object,
) -> Plan:
    models.look(scenario.target.model or "")
    for settings in (before, after):
        _check_settings(name, settings)
    return Plan(
        name=name,
        fix=fix,
        scenario=msgspec.structs.replace(scenario, load=shaped(scenario.load, users, fix)),
        pairs=pairs,
        before=TriedSide(settings=before),
        after=TriedSide(settings=after),
        **more,  # type: ignore[arg-type]
    )


def foreign(name: str, scenario: Scenario, users: int | None, pairs: int, **more: object) -> Plan:
    """Of two servers; `name` may be any text, and that of a fix brings its claim and bound."""
    fix = next((fix for fix in catalogue.load_fixes() if fix.id == name), None)
    load = shaped(scenario.load, users, fix)
    return Plan(name, fix, msgspec.structs.replace(scenario, load=load), pairs, **more)  # type: ignore[arg-type]


def shaped(load: Load, users: int | None, fix: Fix | None) -> Load:
    """With what was not asked for: users by what the fix is for, a warm-up for each of them, a length."""
    if users is None:
        classes = set(fix.classes) if fix else set()
        users = next((n for of, n in USERS if of & classes), 1)
    duration_s = load.duration_s or (None if load.requests else DURATION_S)
    warmup = max(load.warmup_requests, users)
    return msgspec.structs.replace(
        load, concurrency=users, duration_s=duration_s, warmup_requests=warmup, baseline_requests=0
    )


def device_here(options: Mapping[str, str]) -> str:
    asked = options.get("device", "auto")
    if asked != "auto":
        return asked.partition(":")[0]
    return "cuda" if _host.host_facts().gpus else "cpu"


def _check_device(fix: Fix, options: Mapping[str, str]) -> None:
    device = device_here(options)
    if fix.devices and device not in fix.devices:
        needs = " or ".join({"cuda": "an NVIDIA GPU", "cpu": "the CPU"}[name] for name in fix.devices)
        raise CannotTry(
            f"{fix.id} cannot be tried here: it is for {needs}, and the model would run on {device}",
            "Its effect is of that device alone.",
            "try it on a machine that has one" if device == "cpu" else "add --device cpu",
        )


def _check_settings(name: str, settings: Mapping[str, str]) -> None:
    asked = {name: value for name, value in settings.items() if name not in LAUNCH}
    try:
        _choose.check(asked, device_here(settings) == "cuda")
    except ModelError as error:
        raise CannotTry(f"{name} cannot be tried here: {error.what}", error.why, error.do) from error


def described(load: Load) -> str:
    """`4 at once, 48 tokens each, at least 3 s a run`."""
    length = f"at least {units.seconds(load.duration_s)}" if load.duration_s else f"{load.requests} requests"
    return f"{load.concurrency} at once, {load.prompts.output_tokens} tokens each, {length} a run"


def about_s(plan: Plan) -> float:
    """How long the runs will take, where answers do not take long."""
    each = plan.load.duration_s or 1.0
    return math.ceil((2 * plan.pairs + 1) * (each + 1.0))
