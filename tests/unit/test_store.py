"""The run folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from perfdoctor import folders, store
from perfdoctor.disk import write_atomically
from perfdoctor.errors import DiskFull, RunFolderError
from perfdoctor.model import RequestRecord, RunFacts, Sample, Scenario, Target


def a_request(id_: int, **fields: object) -> RequestRecord:
    return RequestRecord(id=id_, phase="steady", due_s=0.0, **fields)


def test_what_was_written_is_read_back(tmp_path: Path):
    """Requests, samples and facts survive the round trip unchanged."""
    writer = store.create_run(RunFacts(command="diagnose"), tmp_path / "run")
    request = a_request(1, token_at_s=(1.0, 1.5), outcome="truncated", error="cut")
    sample = Sample(
        at_s=1.0, probe="disk", values={"reads": 3.0, "busy_time_s": None}, labels={"device": "vda"}
    )

    writer.append_request(request)
    writer.append_sample(sample)
    writer.seal(state="complete")

    run = store.open_run(tmp_path / "run")
    assert "complete" == run.state
    assert (request,) == run.read_requests()
    assert (sample,) == run.read_samples()


def test_a_torn_last_line_is_skipped(tmp_path: Path):
    """A write cut in the middle costs that line only."""
    writer = store.create_run(RunFacts(), tmp_path / "run")
    writer.append_request(a_request(1))
    writer.seal(state="complete")
    with (tmp_path / "run" / "requests.jsonl").open("ab") as file:
        file.write(b'{"id":2,"phase":"ste')

    assert [1] == [r.id for r in store.open_run(tmp_path / "run").read_requests()]


def test_a_killed_run_is_readable_up_to_the_last_flush(tmp_path: Path):
    """kill -9 leaves a folder that opens, counts as interrupted, and holds the earlier records."""
    code = (
        "import time\nfrom perfdoctor import store\n"
        "from perfdoctor.model import RequestRecord, RunFacts\n"
        f"w = store.create_run(RunFacts(), __import__('pathlib').Path({str(tmp_path / 'run')!r}))\n"
        "w.append_request(RequestRecord(id=7, phase='steady', due_s=0.0))\n"
        "time.sleep(0.6)\nprint('flushed', flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert "flushed" == child.stdout.readline().strip()
        os.kill(child.pid, signal.SIGKILL)

    run = store.open_run(tmp_path / "run")
    assert "interrupted" == run.state
    assert [7] == [r.id for r in run.read_requests()]


def test_secrets_reach_no_file(tmp_path: Path):
    """A key is replaced in records, facts, scenario and log, also when quoted or base64-encoded."""
    key = 'sk-"very"/secret'
    facts = RunFacts(
        argv=("--header", f"X-Key: {key}"), scenario=Scenario(target=Target(headers={"X-Key": key}))
    )
    writer = store.create_run(facts, tmp_path / "run", secrets=[key])

    writer.append_request(a_request(1, error=f"server said {key}"))
    writer.log(f"key {key} c2stInZlcnkiL3NlY3JldA==")
    writer.seal(state="complete")

    content = b"".join(p.read_bytes() for p in (tmp_path / "run").iterdir())
    assert b"very" not in content
    assert b"c2stInZlcnkiL3NlY3JldA==" not in content
    assert b"[redacted]" in content
    assert (
        msgspec.json.decode((tmp_path / "run" / "run.json").read_bytes(), type=RunFacts).argv[0] == "--header"
    )


def test_a_newer_folder_is_refused_with_the_way_out(tmp_path: Path):
    """A schema of the future names both versions and the update."""
    (tmp_path / "run.json").write_text('{"schema": 99}')

    with pytest.raises(RunFolderError, match="newer") as caught:
        store.open_run(tmp_path)
    assert "pip install -U" in caught.value.do


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": 1, "phases": 3}', "\x00\xff"])
def test_a_broken_folder_is_refused_without_a_traceback(tmp_path: Path, content: str):
    """Any garbage in run.json is a RunFolderError."""
    (tmp_path / "run.json").write_text(content)

    with pytest.raises(RunFolderError):
        store.open_run(tmp_path)


def test_runs_are_never_overwritten(tmp_path: Path):
    """The same folder twice is an error, not a loss."""
    store.create_run(RunFacts(), tmp_path / "run").seal(state="complete")

    with pytest.raises(RunFolderError, match="already holds a run"):
        store.create_run(RunFacts(), tmp_path / "run")


def test_latest_is_the_newest_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`latest` looks under the runs root, and says where when there is none."""
    monkeypatch.setenv(folders.RUNS_ENV, str(tmp_path))
    with pytest.raises(RunFolderError, match="no run found"):
        store.open_run()
    store.create_run(RunFacts(command="old"), tmp_path / "b").seal(state="complete")
    store.create_run(RunFacts(command="new"), tmp_path / "a").seal(state="complete")
    os.utime(tmp_path / "b" / "run.json", (1, 1))

    assert "new" == store.open_run().facts.command


def test_a_full_disk_is_said_once_and_keeps_what_was_written():
    """ENOSPC becomes DiskFull with the folder's name, and the writer reports it when asked."""
    if not os.access("/dev/shm", os.W_OK) or os.geteuid() != 0:
        pytest.skip("needs root and /dev/shm to mount a small file system")
    mount = Path("/dev/shm/perfdoctor-full-disk")
    mount.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount)], check=False)
    if mounted.returncode:
        mount.rmdir()
        pytest.skip("cannot mount here")
    writer = store.create_run(RunFacts(), mount / "run")
    try:
        for _ in range(2):
            writer.append_request(a_request(1))
        time.sleep(2 * store.FLUSH_S)
        for number in range(4000):
            writer.append_request(a_request(number, error="x" * 200))
        deadline = time.monotonic() + 5
        while writer.failure is None and time.monotonic() < deadline:
            time.sleep(0.05)

        with pytest.raises(DiskFull, match="No space left"):
            writer.check()
        assert [1, 1] == [r.id for r in store.open_run(mount / "run").read_requests()[:2]]
        with pytest.raises(DiskFull):
            writer.seal(state="failed")
    finally:
        subprocess.run(["umount", str(mount)], check=True)
        mount.rmdir()


def test_notebooks_get_frames(tmp_path: Path):
    """requests() and samples() give one row per record and per value."""
    writer = store.create_run(RunFacts(), tmp_path / "run")
    writer.append_request(a_request(1))
    writer.append_sample(
        Sample(at_s=2.0, probe="gpu", values={"util": 1.0, "power_w": 9.0}, labels={"gpu": "0"})
    )
    writer.seal(state="complete")

    run = store.open_run(tmp_path / "run")
    assert ["steady"] == list(run.requests()["phase"])
    assert [("util", 1.0, "0"), ("power_w", 9.0, "0")] == [
        (row.metric, row.value, row.gpu) for row in run.samples().itertuples()
    ]


def test_runs_of_the_same_second_get_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The folder is made by whoever names it, so two processes cannot share one."""
    monkeypatch.setenv(folders.RUNS_ENV, str(tmp_path))

    with ThreadPoolExecutor(8) as pool:
        writers = list(pool.map(lambda _: store.create_run(RunFacts()), range(8)))

    assert 8 == len({writer.path for writer in writers})
    for writer in writers:
        writer.seal(state="complete")


def test_damaged_lines_are_counted(tmp_path: Path):
    """Left out, and said; a torn last line is the normal end of a killed run and is not."""
    writer = store.create_run(RunFacts(), tmp_path / "run")
    writer.append_request(a_request(1))
    writer.seal(state="complete")
    with (tmp_path / "run" / "requests.jsonl").open("ab") as file:
        file.write(b'nonsense\n\xff\xfe\n{"id":true}\n\n{"id":2,"pha')

    run = store.open_run(tmp_path / "run")

    assert [1] == [r.id for r in run.read_requests()]
    assert {"requests.jsonl": 4} == run.damaged


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"schema": "x"}',
        b'{"state": "odd"}',
        b"\xff\xfe",
        b'{"run": "\xff"}',
        b"\0" * 9,
    ],
)
def test_a_damaged_run_json_is_said(tmp_path: Path, content: bytes):
    """Any content gives the same clear error."""
    (tmp_path / "run.json").write_bytes(content)

    with pytest.raises(RunFolderError, match=r"run\.json is damaged"):
        store.open_run(tmp_path)


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path):
    """No half file beside the old one."""
    (tmp_path / "taken").mkdir()

    with pytest.raises(DiskFull):
        write_atomically(tmp_path / "taken", b"content")

    assert ["taken"] == [path.name for path in tmp_path.iterdir()]


def test_a_name_no_file_can_have_is_no_crash(tmp_path: Path):
    """Pasted text in place of a path."""
    with pytest.raises(RunFolderError):
        store.open_run("x" * 5000)
    with pytest.raises(DiskFull):
        store.create_run(RunFacts(), tmp_path / ("x" * 5000))


def test_a_run_that_is_still_written_to_is_running(tmp_path: Path):
    """Not taken for a killed one; once its writer is gone it is."""
    writer = store.create_run(RunFacts(), tmp_path / "run")

    assert "running" == store.open_run(tmp_path / "run").state

    writer.seal()
    assert "interrupted" == store.open_run(tmp_path / "run").state
