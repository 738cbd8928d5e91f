"""How connections are made: paced, to the address that answers, with one look-up for all."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

from perfdoctor.loadgen import loop
from perfdoctor.loadgen.transports._connection import Connection
from perfdoctor.loadgen.transports._dialler import DIALS, Dialler
from perfdoctor.loadgen.transports._heads import Heads
from perfdoctor.loadgen.transports._transport import Dial, Failure


class Counting(Dialler):
    """Makes no connection, and counts how many it was making at a time."""

    now = most = 0

    async def _connect(self, dial: Dial) -> Connection:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        return Connection(Heads())


def test_a_burst_of_connects_is_paced():
    """More at once overrun a server's accept queue; the wait shows as the dial's own delay."""

    async def conduct() -> tuple[int, list[Dial]]:
        dialler, dials = Counting("h", 1, None, None, 5.0), [Dial() for _ in range(3 * DIALS)]
        dialler.open()
        await asyncio.gather(*(dialler.dial(dial) for dial in dials))
        return dialler.most, dials

    most, dials = asyncio.run(conduct())

    assert DIALS == most
    assert dials[-1].dialled_ns - dials[0].dialled_ns > 1_000_000


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=64)


def test_the_address_that_answers_is_tried_first_from_then_on():
    """`localhost` may mean ::1 as well, where a server that listens on 127.0.0.1 alone refuses."""
    with listening() as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        refusing, good = closed.getsockname(), server.getsockname()

        async def conduct() -> tuple[list[tuple[str, int]], int]:
            dialler = Dialler("localhost", good[1], None, None, 5.0)
            dialler.open()
            dialler._addresses = [(socket.AF_INET, refusing), (socket.AF_INET, good)]
            dialler._resolved_s = asyncio.get_running_loop().time()
            for _ in range(2):
                (await dialler.dial(Dial())).close()
            return [place for _, place in dialler._addresses], dialler.made

        addresses, made = loop.run(conduct())

    assert [good, refusing] == addresses
    assert 2 == made


def test_a_name_is_looked_up_once_for_all_who_wait(monkeypatch):
    """Sixty users that start together ask the resolver one question."""
    with listening() as server:

        async def conduct() -> int:
            asked, running = [], asyncio.get_running_loop()
            look_up = running.getaddrinfo
            monkeypatch.setattr(
                running, "getaddrinfo", lambda *words, **more: asked.append(words) or look_up(*words, **more)
            )
            dialler = Dialler("localhost", server.getsockname()[1], None, None, 5.0)
            dialler.open()
            for connection in await asyncio.gather(*(dialler.dial(Dial()) for _ in range(60))):
                connection.close()
            return len(asked)

        assert 1 == asyncio.run(conduct())


def test_no_connection_within_its_time_is_a_failure_to_connect():
    """Told with the limit; nothing is left behind."""

    class Stuck(Dialler):
        async def _connect(self, dial: Dial) -> Connection:
            await asyncio.sleep(5)
            raise AssertionError("unreachable")

    async def conduct() -> None:
        dialler = Stuck("h", 1, None, None, 0.01)
        dialler.open()
        await dialler.dial(Dial())

    with pytest.raises(Failure, match=r"within 0\.01 s") as caught:
        asyncio.run(conduct())
    assert "connect" == caught.value.outcome


@pytest.mark.parametrize("run", [asyncio.run, loop.run], ids=["asyncio", "uvloop"])
def test_a_request_is_written_when_the_kernel_has_all_of_it(run):
    """A big body fills the socket: until the server reads, its last byte has not left."""
    pause_s = 0.15
    body = b"x" * 30_000_000
    with listening() as server:

        def answer() -> None:
            near, _ = server.accept()
            time.sleep(pause_s)
            left = len(body)
            while left > 0:
                left -= len(near.recv(2**20))
            near.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            near.close()

        thread = threading.Thread(target=answer)
        thread.start()

        class Nothing:
            def on_head(self, status, headers, at_ns):
                return lambda read, at_ns: False

        async def conduct() -> tuple[Dial, int | None]:
            dialler, dial = Dialler("127.0.0.1", server.getsockname()[1], None, None, 5.0), Dial()
            dialler.open()
            connection = await dialler.dial(dial)
            await connection.ask(body, Nothing(), None)
            connection.close()
            await asyncio.sleep(0.01)  # until the loop has let go of it
            return dial, connection.written_ns

        dial, written_ns = run(conduct())
        thread.join()

    assert written_ns - dial.connected_ns >= pause_s * 1e9 * 0.9
