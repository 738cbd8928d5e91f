"""Finding processes: by port, by parent, by name."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from perfdoctor.probes import _processes
from perfdoctor.probes._subject import Subject

WAIT = "import sys; sys.stdin.read()"


def test_the_listener_of_a_port_is_found():
    """This very process listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert os.getpid() == _processes.listener_pid(server.getsockname()[1])


def test_nobody_listens():
    """A port that was just given back."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    assert _processes.listener_pid(port) is None


@pytest.mark.parametrize(
    ("parents", "expected"), [({10: 1, 11: 10, 12: 10}, 10), ({11: 3, 12: 3}, 11), ({}, None)]
)
def test_of_forked_workers_the_parent_is_the_server(parents, expected):
    """Workers share the socket of their parent; without it among them the lowest id."""
    assert expected == _processes.eldest(parents)


def test_the_tree_holds_grandchildren():
    """A shell starts Python starts Python."""
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WAIT!r}])"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    try:
        for _ in range(200):
            tree = _processes.process_tree(child.pid)
            if len(tree) == 2:
                break
            time.sleep(0.02)  # another process starts in its own time

        assert child.pid == tree[0]
        assert 2 == len(tree)
        assert tree[1] in Subject(pid=child.pid).pids()
    finally:
        assert child.stdin is not None
        child.stdin.close()
        child.wait(10)

    assert () == _processes.process_tree(child.pid)


def test_without_the_kernels_list_psutil_knows_the_tree():
    """Kernels without CONFIG_PROC_CHILDREN."""
    assert os.getpid() == _processes._tree_by_psutil(os.getpid())[0]
    assert () == _processes._tree_by_psutil(2**22 - 1)


def test_a_command_line_keeps_its_arguments_apart():
    """Blanks inside an argument do not split it."""
    ready = f"print('ready', flush=True); {WAIT}"
    child = subprocess.Popen(
        [sys.executable, "-c", ready, "two words"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()

        assert "two words" == _processes.command_line(child.pid)[-1]
    finally:
        child.communicate(timeout=10)

    assert () == _processes.command_line(2**22 - 1)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("127.5.5.5", True),
        ("::1", True),
        ("0.0.0.0", True),
        ("::ffff:10.0.0.7", True),
        ("10.0.0.7", True),
        ("fe80::1%eth0", True),
        ("10.0.0.8", False),
        ("93.184.216.34", False),
    ],
)
def test_own_addresses_are_this_host(address, expected):
    """Loopback, the wildcard and the interfaces' addresses."""
    assert expected is _processes.is_own_address(address, ("10.0.0.7", "fe80::1%eth1"))


def test_a_name_that_resolves_to_nothing_is_elsewhere():
    """Names under .invalid never resolve."""
    assert _processes.is_this_host("localhost")
    assert not _processes.is_this_host("no-such-host.invalid")


def test_a_subject_without_a_process_has_no_tree():
    """Before the server runs."""
    assert () == Subject().pids()
