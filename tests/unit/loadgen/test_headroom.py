"""Descriptors and ports: known before the load, watched during it."""

from __future__ import annotations

import resource

import pytest

from perfdoctor.errors import UsageError
from perfdoctor.loadgen import headroom
from perfdoctor.loadgen.headroom import PortUse, make_room
from perfdoctor.model import Load, Target, Wire


@pytest.fixture
def limits(monkeypatch):
    """Limits of this process that nobody else sees."""
    kept = {"soft": 256, "hard": 4096}
    monkeypatch.setattr(resource, "getrlimit", lambda _: (kept["soft"], kept["hard"]))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: kept.update(soft=pair[0]))
    monkeypatch.setattr(headroom, "ephemeral_ports", lambda: 2000)
    return kept


@pytest.mark.parametrize(("users", "soft"), [(100, 256), (156, 256), (157, 257), (1000, 1100)], ids=str)
def test_the_soft_limit_is_raised_as_far_as_needed(limits, users, soft):
    """A connection a user, and a hundred for everything else."""
    make_room(Load(concurrency=users), Target())

    assert soft == limits["soft"]


def test_a_load_beyond_the_hard_limit_is_refused(limits):
    """Before the first request, with the command that would allow it."""
    limits["hard"] = 1000

    make_room(Load(concurrency=900), Target())
    with pytest.raises(UsageError) as raised:
        make_room(Load(concurrency=901), Target())

    assert "ulimit -Hn 1001" in raised.value.do


def test_a_load_beyond_the_port_range_is_refused(limits):
    """With the sysctl that widens it. A unix socket needs no port."""
    with pytest.raises(UsageError) as raised:
        make_room(Load(concurrency=2001), Target())

    assert "net.ipv4.ip_local_port_range" in raised.value.do
    make_room(Load(concurrency=2001), Target(wire=Wire(unix_socket="/run/server.sock")))


def test_an_open_loop_without_a_cap_gets_what_there_is(limits):
    """How many requests it will have open, nobody knows; with a cap they are known."""
    make_room(Load(arrival="poisson", rate=1.0, concurrency=9999), Target())

    assert 4096 == limits["soft"]
    with pytest.raises(UsageError):
        make_room(Load(arrival="poisson", rate=1.0, max_in_flight=5000), Target())


def test_ports_of_the_last_minute_are_in_use():
    """100 new connections a second: 6000 in TIME_WAIT, however long it goes on."""
    use = PortUse(0)
    for second in range(1, 200):
        use.note(100 * second, open_now=10)

    assert 6000 == use.used_max


def test_kept_alive_connections_hold_their_ports():
    """Nothing new is dialled, and they are in use all the same."""
    use = PortUse(500)
    use.note(500, open_now=40)

    assert 40 == use.used_max
