"""A server that speaks HTTP/2 alone and answers every request with one stream of events."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence

import h2.config
import h2.connection
import h2.events

HEADERS = [(":status", "200"), ("content-type", "text/event-stream")]


@contextlib.contextmanager
def serving(pieces: Sequence[bytes], ends: bool = True) -> Iterator[str]:
    """The endpoint, by prior knowledge over plain TCP. Without `ends` a reset follows the last byte."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=_converse, args=(near, pieces, ends), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _converse(near: socket.socket, pieces: Sequence[bytes], ends: bool) -> None:
    spoken = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    spoken.initiate_connection()
    with contextlib.suppress(OSError), near:
        near.sendall(spoken.data_to_send())
        while read := near.recv(65536):
            for event in spoken.receive_data(read):
                if isinstance(event, h2.events.StreamEnded):
                    _answer(spoken, event.stream_id, pieces, ends)
            near.sendall(spoken.data_to_send())


def _answer(spoken: h2.connection.H2Connection, stream: int, pieces: Sequence[bytes], ends: bool) -> None:
    spoken.send_headers(stream, HEADERS)
    for piece in pieces:
        spoken.send_data(stream, piece)
    if ends:
        spoken.end_stream(stream)
    else:
        spoken.reset_stream(stream)
