"""What the load generator may look at to measure a duration."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import perfdoctor

ROOT = Path(perfdoctor.__file__).parent
MEASURING = sorted(
    [*(ROOT / "loadgen").rglob("*.py"), ROOT / "stages.py", ROOT / "latency.py", ROOT / "trust.py"]
)
WALL = {"time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime", "ctime"}  # of time and datetime


def wall_clock_in(source: str) -> list[str]:
    """Looks at the wall clock, as `line name`, however the name was imported."""
    tree, found, local = ast.parse(source), list[str](), dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            local |= {a.asname or a.name: a.name for a in node.names if a.name in ("time", "datetime")}
        elif isinstance(node, ast.ImportFrom) and node.module in ("time", "datetime"):
            local |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and local.get(node.id, "").partition(".")[2] in WALL:
            found.append(f"{node.lineno} {node.id}")
        if isinstance(node, ast.Attribute) and node.attr in WALL:
            owner = ast.unparse(node.value)
            if owner.partition(".")[0] in local:
                found.append(f"{node.lineno} {owner}.{node.attr}")
    return found


def test_no_duration_is_of_the_wall_clock():
    """It may be stepped back in the middle of a run; a latency would be negative then."""
    looks = {str(file.relative_to(ROOT)): wall_clock_in(file.read_text()) for file in MEASURING}

    assert {} == {name: found for name, found in looks.items() if found}
    assert len(looks) > 50


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.time()", "import time as t\nt.time_ns()", "from time import time as now\nnow()",
        "import datetime\ndatetime.datetime.now()", "from datetime import datetime\ndatetime.now()",
        "import time\nlook = time.time",
    ],
)  # fmt: skip
def test_a_look_at_the_wall_clock_is_found(source: str):
    """In each spelling; the monotonic ones are none."""
    assert 1 == len(wall_clock_in(source))
    assert [] == wall_clock_in("import time\nfrom time import perf_counter\ntime.monotonic(), perf_counter()")
