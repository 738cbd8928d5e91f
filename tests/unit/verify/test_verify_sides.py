"""Two sides in one memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdoctor.errors import ModelError, NoRoom, ServerDied, TargetError
from perfdoctor.local.patient import Patient
from perfdoctor.verify._side import Bench, Child, EndpointSide, LocalSide, Log, died, is_no_room, of_process


class Room:
    """Memory for so many servers; a stand-in for the process that a Patient starts."""

    def __init__(self, places: int) -> None:
        self.places, self.up = places, 0

    def side(self, name: str, tmp_path: Path) -> Guest:
        return Guest(name, self, tmp_path)


class Guest:
    owned, patient = True, None

    def __init__(self, name: str, room: Room, tmp_path: Path) -> None:
        self.name, self.room, self.up = name, room, False

    def start(self) -> None:
        if self.room.up == self.room.places:
            raise NoRoom(f"there is not enough memory for the {self.name} side")
        self.room.up += 1
        self.up = True

    def stop(self) -> None:
        self.room.up -= self.up
        self.up = False

    def last_words(self) -> str:
        return "a last word"


def bench(places: int, tmp_path: Path) -> Bench:
    room = Room(places)
    return Bench((room.side("before", tmp_path), room.side("after", tmp_path)))  # type: ignore[arg-type]


def test_both_stay_up_where_there_is_room(tmp_path: Path):
    """Each is started once."""
    found = bench(2, tmp_path)

    assert [True, True, False, False] == [found.use(n)[1] for n in ("before", "after", "before", "after")]
    assert found.together


def test_one_is_stopped_for_the_other_where_there_is_none(tmp_path: Path):
    """From then on, and it is noted once."""
    found = bench(1, tmp_path)

    assert [True, True, True, False] == [found.use(n)[1] for n in ("before", "after", "before", "before")]
    assert (False, 1) == (found.together, len(found.notes))


def test_a_side_that_does_not_fit_alone_is_an_error(tmp_path: Path):
    """Whether or not the other was up."""
    with pytest.raises(NoRoom):
        bench(0, tmp_path).use("before")


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ModelError("there is not enough memory for this model", "DefaultCPUAllocator"), NoRoom),
        (ModelError("the model server was killed while it started"), NoRoom),
        (ModelError("the model could not be run", "CUDA error: out of memory"), NoRoom),
        (ModelError("there is no model 'x'"), ModelError),
    ],
)
def test_how_a_local_side_says_that_memory_was_missing(
    raised: ModelError, expected: type[TargetError], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """By the child's own words, or by the kernel that killed it."""

    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(Patient, "start", fail)

    with pytest.raises(expected) as caught:
        LocalSide("after", {}, Child("tiny", {}, Log(tmp_path / "after.log"))).start()

    assert isinstance(caught.value, NoRoom) == (expected is NoRoom)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory.", True),
        ("ValueError: Free memory on device is less than desired GPU memory utilization", True),
        ("terminate called after throwing an instance of 'std::bad_alloc'", True),
        ("loading memory-mapped weights", False),
    ],
)
def test_the_words_of_allocators(text: str, found: bool):
    """Of torch, vLLM and C++."""
    assert found == is_no_room(text)


def test_a_side_that_is_gone_explains_a_failed_run(tmp_path: Path):
    """With its last words; of one that is up, or not ours, the error stays what it was."""
    error = TargetError("no answer")
    guest = Room(1).side("after", tmp_path)

    told = died(guest, error)  # type: ignore[arg-type]
    assert isinstance(told, ServerDied) and "a last word" in told.why
    guest.start()
    assert died(guest, error) is error  # type: ignore[arg-type]
    assert died(EndpointSide("after", "http://127.0.0.1:9"), error) is error


def test_a_log_keeps_its_last_lines(tmp_path: Path):
    """For an error; all of them go to the file."""
    log = Log(tmp_path / "it.log")
    for number in range(20):
        log(f"local server: line {number}")

    assert log.words().startswith("line 12 | ") and log.words().endswith("line 19")
    assert 20 == len((tmp_path / "it.log").read_text().splitlines())
    assert "it printed nothing" == Log(tmp_path / "other.log").words()


def test_which_settings_need_a_process_of_their_own():
    """Precision, device and threads; switches of a loaded model do not."""
    settings = {"dtype": "bfloat16", "threads": "1", "cache": "static", "kv": "off"}

    assert {"dtype": "bfloat16", "threads": "1"} == of_process(settings)


class FakePatient:
    """A child that notes its switches; `server` is what Child asks whether it lives."""

    def __init__(self, *_: object) -> None:
        self.used: list[dict[str, str]] = []
        self.loading: list[object] = []
        self.server = self
        self.lives = False

    def alive(self) -> bool:
        return self.lives

    def start(self, log: object) -> None:
        self.lives = True

    def stop(self) -> None:
        self.lives = False

    def use(self, switches: dict[str, str]) -> float:
        self.used.append(dict(switches))
        return 3.0 if "compile" in switches else 0.0


def test_two_sides_of_one_process_take_turns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """It is started once; each use puts the switches of its side; what compiling took is told once."""
    monkeypatch.setattr("perfdoctor.verify._side.Patient", FakePatient)
    child = Child("tiny", {}, Log(tmp_path / "it.log"))
    sides = (
        LocalSide("before", {}, child),
        LocalSide("after", {"cache": "static", "compile": "default"}, child),
    )
    found = Bench(sides)

    started = [found.use(name)[1] for name in ("before", "after", "after", "before")]

    assert [True, False, False, False] == started
    assert [{}, {"cache": "static", "compile": "default"}, {}] == child.patient.used  # type: ignore[union-attr]
    assert (True, False) == (sides[0].up, sides[1].up)
    assert (None, 3.0) == (sides[0].tried.compile_s, sides[1].tried.compile_s)
    found.stop()
    assert [False, False] == [side.up for side in sides]
    assert found.use("after")[1]
