"""Help that fits a newcomer: examples first, flags under headings, on a narrow terminal."""

from __future__ import annotations

import pytest

from tests.inside import perfdoctor

COMMANDS = ("load-test", "diagnose", "report", "check", "explain", "calibrate", "sweep", "compare", "verify")


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_come_before_flags(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
):
    """Each can be typed as it stands; no line is wider than 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    ended = perfdoctor(capsys, command, "--help")

    assert 0 == ended.code
    example, flag = ended.out.index(f"    perfdoctor {command}"), ended.out.index("  -h, --help")
    assert example < ended.out.index("\n  -") <= flag
    assert 80 >= max(map(len, ended.out.splitlines()))


@pytest.mark.parametrize("command", ["load-test", "diagnose"])
def test_many_flags_stand_under_headings(capsys: pytest.CaptureFixture[str], command: str):
    """In the order in which a newcomer needs them."""
    lines = perfdoctor(capsys, command, "--help").out.splitlines()
    headings = [line.partition(":")[0] for line in lines if line[:1].isalpha() and line.endswith(":")]

    assert ["Target", "Load", "Open loop", "Prompts", "Limits", "Connection", "Result"] == [
        name for name in headings if name not in ("Local model", "Arguments", "Other")
    ]
