"""`perfdoctor calibrate` as a person runs it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.test_cli_failures import finish, start

pytestmark = [pytest.mark.server, pytest.mark.alone]


def test_a_ctrl_c_of_a_terminal_ends_it_quietly(tmp_path: Path) -> None:
    """It reaches the whole group of processes; the paced server has nothing to say about it."""
    process = start("calibrate", "--quick", cwd=tmp_path, start_new_session=True)
    assert process.stderr is not None
    assert "1 stream" in process.stderr.readline()
    time.sleep(1.0)  # the server is up, and the stream runs
    os.killpg(process.pid, signal.SIGINT)
    ended = finish(process)

    assert (130, "") == (ended.code, ended.out)
    assert "perfdoctor:" not in ended.err
