"""Every rule against its readable case file, and the case files against the rule's own limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perfdoctor import registry
from perfdoctor.diagnosis import judge
from perfdoctor.diagnosis.measure import Table, all_measures
from perfdoctor.diagnosis.rule import Rule
from perfdoctor.model import Ledger, LedgerRow, Signal

CASES = Path(__file__).parents[2] / "cases"
RULES = dict(judge.load_rules())
UNITS = {m.name: m.unit for m in all_measures()}


def table_of(signals: dict[str, float]) -> Table:
    """A signal table that lacks every signal that is not named."""
    return {
        name: Signal(
            name=name, value=signals.get(name), unit=unit, missing=None if name in signals else "left out"
        )
        for name, unit in UNITS.items()
    }


def read_cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.toml.decode((CASES / f"{name}.toml").read_bytes())["case"]
    return found


def all_cases() -> Iterator[Any]:
    for path in sorted(CASES.glob("*.toml")):
        for case in read_cases(path.stem):
            yield pytest.param(path.stem, case, id=f"{path.stem}: {case['name']}")


@pytest.mark.parametrize(("name", "case"), all_cases())
def test_case(name: str, case: dict[str, Any]) -> None:
    """The rule answers as the case says, and names the signal that decided."""
    ground = judge.Ground(table_of(case["signals"]), Ledger(), steady_s=60.0, barred={})

    state = judge.judge(name, RULES[name], ground).state

    assert case["expect"] == state.status, state.reason
    assert case.get("says", "") in state.reason


@pytest.mark.parametrize("name", RULES)
def test_cases_name_known_signals(name: str) -> None:
    """A misspelt signal in a case file would be a missing one, and prove nothing."""
    for case in read_cases(name):
        assert set() == set(case["signals"]) - set(UNITS)


@pytest.mark.parametrize("name", RULES)
def test_both_sides_of_every_limit(name: str) -> None:
    """Every limit has a case on it or within 1 % above, one within 1 % below, and one where it is missing.

    A number of users or processes, or a flag, has its whole neighbour below instead.
    """
    cases = [case["signals"] for case in read_cases(name)]

    for limit in RULES[name].limits():
        values = [c[limit.signal] for c in cases if limit.signal in c]
        near = 1.0 if UNITS[limit.signal] in ("users", "flag", "processes") else 0.01 * limit.limit
        assert any(limit.limit <= v <= limit.limit + near for v in values), f"at {limit}"
        assert any(limit.limit - near <= v < limit.limit for v in values), f"below {limit}"
        assert any(limit.signal not in c for c in cases), f"missing {limit}"


@pytest.mark.parametrize("name", RULES)
def test_rule_is_complete(name: str) -> None:
    """A rule tests known signals, fills in known signals, says where each limit is from, and has its page."""
    rule: Rule = RULES[name]
    _, page = registry.load_member(judge.RULES, name, "RULE")
    conditions = [rule.when, *rule.support, *(n.when for n in rule.told_apart)]
    limits = [limit for c in conditions for limit in c.limits()]

    assert set() == {limit.signal for limit in limits} - set(UNITS)
    assert all(limit.source for limit in limits)
    assert set() == set(rule.explains) - (set(RULES) - {name})
    assert "What:" in page
    assert "Cost:" in page
    assert "Told apart" in page
    assert rule.says


def test_no_rule_knows_a_name() -> None:
    """No rule, signal or law mentions a server, a scenario or a model by name."""
    folder = Path(judge.__file__).parent
    code = [
        *folder.glob("rules/*.py"),
        *folder.glob("signals/*.py"),
        *sorted((folder / "laws").glob("*.py")),
        folder / "ledger.py",
    ]

    for path in code:
        text = path.read_text("utf-8").lower()
        assert [] == [w for w in ("vllm", "llama.cpp", "sglang", "ollama", "gradio", "qwen") if w in text], (
            path
        )


@pytest.mark.parametrize("name", RULES)
def test_coarse_utilisation_never_decides(name: str) -> None:
    """NVML utilisation is not even a signal."""
    conditions = [RULES[name].when, *RULES[name].support, *(n.when for n in RULES[name].told_apart)]

    assert [] == [x.signal for c in conditions for x in c.limits() if "util" in x.signal]
    assert [] == [m for m in UNITS if m.startswith(("gpu.util", "gpu.mem_util"))]


@pytest.mark.parametrize(
    ("counted", "expected"), [({}, "low"), ({"gpu.graphics_active.decode.p50": 0.1}, "medium")]
)
def test_signs_without_the_devices_counters_are_a_pattern_only(
    counted: dict[str, float], expected: str
) -> None:
    """A thread that waits for the GPU can look as busy as one that launches; counters tell them apart."""
    signals = {
        "cpu.serving.busy.share": 0.99, "gpu.used": 1, "engine.eager": 1, "roof.memory.share": 0.03,
        "gil.second.share": 0.0, "cpu.serving.runq_wait.share": 0.0, "client.cpu.share": 0.1,
        "gpu.sm_active.decode.p50": 0.01, "gpu.pcie_rx_bytes_per_s.decode.p50": 53e6, "drive.requests": 100,
    }  # fmt: skip
    rows = (LedgerRow(row="decode.launch_gap", seconds=0.9, share=0.9),)
    ground = judge.Ground(table_of(signals | counted), Ledger(mean=rows), steady_s=60.0, barred={})

    found = judge.judge("launch-bound-decode", RULES["launch-bound-decode"], ground).finding

    assert found is not None
    assert expected == found.confidence, found.excluded
