"""Windows of py-spy: a stand-in script for its answers, the real one for two programs of known truth."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from perfdoctor.probes import _pyspy, gil
from perfdoctor.probes._probe import NotYet, Unavailable
from perfdoctor.probes._pyspy import NotPython, Window
from perfdoctor.probes._subject import Subject

RAW = """\
thread (11): MainThread;<module> (a.py:1);run (a.py:5) 40
thread (12): gil-hog-0;_bootstrap (threading.py:1002);_hog (b.py:4) 10
thread (12): gil-hog-0;_bootstrap (threading.py:1002);_hog (b.py:5) 5
thread (0x7F12AB);work (c.py:1) 1
"""


@pytest.fixture
def stand_in(tmp_path: Path):
    """A script in py-spy's place: writes the given stacks, says the given words, ends with the given code."""

    def make(
        stacks: str = "", says: str = "Samples: 1 Errors: 0", code: int = 0, lasts_s: float = 0.0
    ) -> str:
        script = tmp_path / "py-spy"
        script.write_text(
            textwrap.dedent(f"""\
            #!{sys.executable}
            import sys, time
            arguments = dict(zip(sys.argv, sys.argv[1:]))
            open(arguments["--output"], "w").write({stacks!r})
            time.sleep({lasts_s})
            print({says!r}, file=sys.stderr)
            sys.exit({code})
            """)
        )
        script.chmod(0o755)
        return str(script)

    return make


def test_samples_are_counted_by_thread_name():
    """Lines of one thread add up; a thread without a name goes by its id."""
    assert {"MainThread": 40, "gil-hog-0": 15, "thread 0x7F12AB": 1} == _pyspy.parse_raw(RAW)
    assert {} == _pyspy.parse_raw("")


def test_errors_are_read_from_the_last_words():
    """None said is none had."""
    assert 7 == _pyspy.parse_errors("py-spy> Wrote data to 'x'. Samples: 103 Errors: 7")
    assert 0 == _pyspy.parse_errors("")


def test_shares_are_of_the_samples_due():
    """56 of 60: the lock was free in the rest, which left no line."""
    window = Window(due=60, errors=2, stacks=RAW, by_thread=_pyspy.parse_raw(RAW), cost_s=0.03)

    whole, *threads = gil.readings_of(7, window, 3.0)

    assert (56 / 60, 56, 2, 3.0) == tuple(
        whole.values[name] for name in ("held_share", "samples", "errors", "window_s")
    )
    assert {"MainThread": 40 / 60, "gil-hog-0": 15 / 60, "thread 0x7F12AB": 1 / 60} == {
        t.labels["thread"]: t.values["held_share"] for t in threads
    }
    assert {"7"} == {t.labels["pid"] for t in threads}
    assert (RAW, 0.03) == (whole.stacks, whole.cost_s)


def test_an_unheld_lock_reads_zero_and_no_thread():
    """Zero is a measurement here: samples were due and none found a holder."""
    (whole,) = gil.readings_of(7, Window(due=60, errors=0, stacks=""), 3.0)

    assert 0.0 == whole.values["held_share"]


@pytest.mark.parametrize(
    ("says", "kind"),
    [
        ("Error: Permission Denied: Try running again with elevated permissions", Unavailable),
        ("Error: Operation not permitted (os error 1)", Unavailable),
        ("Error: Failed to find python version from target process", NotPython),
        ("Error: Bad address (os error 14)", NotPython),
        ("Error: something new", RuntimeError),
        ("", RuntimeError),
    ],
)
def test_each_failure_has_its_meaning(says, kind):
    """Denied for good, no interpreter there, or an error of this window only."""
    assert kind is type(_pyspy.explain_failure(says))


@pytest.mark.parametrize(
    ("scope", "container", "expected"),
    [
        ("1", False, "ptrace_scope=0"),
        ("0", False, "as root"),
        (None, False, "as root"),
        ("1", True, "--cap-add SYS_PTRACE"),
    ],
)
def test_the_least_change_that_permits_it_is_named(tmp_path, scope, container, expected):
    """Yama's switch, root, or the container's missing capability."""
    yama, dockerenv = tmp_path / "ptrace_scope", tmp_path / ".dockerenv"
    if scope is not None:
        yama.write_text(scope + "\n")
    if container:
        dockerenv.touch()

    assert expected in _pyspy.how_to_permit(str(yama), str(dockerenv))


def test_a_window_brings_stacks_errors_and_its_own_cost(stand_in):
    """60 samples are due in 3 s at 20 Hz."""
    script = stand_in(RAW, "Samples: 56 Errors: 4")

    window = _pyspy.record_gil(script, os.getpid(), 3.0, threading.Event())

    assert window is not None
    assert (60, 56, 4, RAW) == (window.due, window.samples, window.errors, window.stacks)
    assert window.cost_s > 0


def test_a_failed_window_raises_its_meaning(stand_in):
    """Denied, through the real path."""
    script = stand_in("", "Error: Permission Denied", code=1)

    with pytest.raises(Unavailable) as caught:
        _pyspy.record_gil(script, os.getpid(), 0.1, threading.Event())

    assert "denied" == caught.value.status
    assert caught.value.enable


def test_the_end_of_the_run_ends_the_window(stand_in):
    """At once, without a zombie: the stop event was set before."""
    stop = threading.Event()
    stop.set()
    begin_s = time.monotonic()

    assert _pyspy.record_gil(stand_in(lasts_s=60.0), os.getpid(), 3.0, stop) is None
    assert time.monotonic() - begin_s < 5


@pytest.mark.skipif(not _pyspy._dying_with_us(), reason="needs setpriv of util-linux 2.33")
def test_a_window_does_not_outlive_a_killed_run(stand_in):
    """Not even by the seconds that are left of it."""
    code = "import sys, threading\nfrom perfdoctor.probes._pyspy import record_gil\n"
    code += f"record_gil({stand_in(lasts_s=60)!r}, 1, 60.0, threading.Event())\n"
    run = subprocess.Popen([sys.executable, "-c", code])
    window = _await(lambda: [c for c in psutil.Process(run.pid).children() if "record" in c.cmdline()])[0]

    run.kill()
    run.wait()

    _await(lambda: not window.is_running() or window.status() == psutil.STATUS_ZOMBIE)


def _await(look):
    deadline_s = time.monotonic() + 10
    while not (found := look()):
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    return found


def test_without_py_spy_the_probe_is_absent(monkeypatch, tmp_path):
    """With the command that installs it."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(Unavailable) as caught:
        _pyspy.find_py_spy()

    assert "absent" == caught.value.status
    assert "pip install py-spy" in (caught.value.enable or "")


@pytest.mark.parametrize(
    ("executable", "maps", "expected"),
    [
        ("/usr/bin/python3.11", "", True),
        ("/opt/pypy3", "", True),
        ("/usr/bin/uwsgi", "7f00 r-xp /usr/lib/libpython3.11.so.1.0\n", True),
        ("/usr/bin/llama-server", "7f00 r-xp /usr/lib/libc.so.6\n", False),
    ],
)
def test_an_interpreter_is_known_by_name_or_library(executable, maps, expected):
    """A native server has no GIL."""
    assert expected is gil.looks_python(executable, maps)


def test_near_equals_take_turns():
    """The busiest first, then the one not seen for longest; a far less busy one never."""
    used_s = {1: 1.0, 2: 0.8, 3: 0.1}

    assert 1 == gil.choose(used_s, {})
    assert 2 == gil.choose(used_s, {1: 10.0})
    assert 1 == gil.choose(used_s, {1: 10.0, 2: 20.0})
    assert gil.choose({}, {}) is None


def test_without_a_process_it_waits():
    """The server does not run yet."""
    with pytest.raises(NotYet):
        gil.GilReader(Subject(), threading.Event(), "py-spy").read()


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A native process, old enough to be looked at."""
    child = subprocess.Popen(["sleep", "60"])
    while gil_age_s(child.pid) < gil.MIN_AGE_S:
        time.sleep(0.1)  # the kernel's clock, not ours
    yield child.pid
    child.kill()
    child.wait()


def gil_age_s(pid: int) -> float:
    started = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return float(Path("/proc/uptime").read_text().split()[0]) - started / os.sysconf("SC_CLK_TCK")


def test_a_native_server_is_unsupported(sleeper):
    """It has no lock to hold; py-spy is not even asked."""
    with pytest.raises(NotYet) as caught:
        gil.GilReader(Subject(pid=sleeper), threading.Event(), "/does/not/exist").read()

    assert "unsupported" == caught.value.status
    assert "no GIL" in caught.value.why


class _Alone(Subject):
    """Without children: other tests' servers may be children of this process."""

    def pids(self) -> tuple[int, ...]:
        return (os.getpid(),)


def test_a_process_without_interpreter_is_given_up_after_some_tries(stand_in):
    """py-spy may fail on one that is just starting, so once is not enough."""
    script = stand_in("", "Error: Failed to find python version from target process", code=1)
    reader = gil.GilReader(_Alone(), threading.Event(), script)
    reasons = []

    for _ in range(gil.MAX_REFUSALS + 1):
        with pytest.raises(NotYet) as caught:
            reader.read()
        reasons.append(caught.value.why)

    assert all("holds no Python interpreter" in why for why in reasons[:-1])
    assert "no process of the server" in reasons[-1]


@pytest.mark.parametrize(
    ("program", "low", "high"),
    [("while True: sum(range(2000))", 0.8, 1.0), ("import time; time.sleep(60)", 0.0, 0.1)],
)
def test_real_programs_read_as_they_are(program, low, high):
    """A busy loop holds the lock, a sleeping program does not."""
    child = subprocess.Popen([sys.executable, "-c", program])
    try:
        while gil_age_s(child.pid) < gil.MIN_AGE_S:
            time.sleep(0.1)
        try:
            reader = gil.GilReader(Subject(pid=child.pid), threading.Event(), _pyspy.find_py_spy())
            whole = reader.read()[0]
        except Unavailable as error:
            pytest.skip(f"py-spy cannot work here: {error.why}")
    finally:
        child.kill()
        child.wait()

    assert low <= whole.values["held_share"] <= high
    assert str(child.pid) == whole.labels["pid"]
