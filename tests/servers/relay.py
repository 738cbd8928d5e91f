"""Another way to a server: a unix socket or a TLS port whose bytes go to a plain port and back."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def unix_socket(path: Path, port: int) -> Iterator[None]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    with _relaying(listener, port):
        yield


@contextlib.contextmanager
def tls(context: ssl.SSLContext, port: int) -> Iterator[str]:
    """The address of the TLS port, without scheme."""
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    with _relaying(listener, port, context):
        yield address


@contextlib.contextmanager
def _relaying(listener: socket.socket, port: int, context: ssl.SSLContext | None = None) -> Iterator[None]:
    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=_join, args=(near, port, context), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _join(near: socket.socket, port: int, context: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError):
        if context:
            near = context.wrap_socket(near, server_side=True)
        far = socket.create_connection(("127.0.0.1", port))
        for end in (near, far):
            if end.family != socket.AF_UNIX:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_pump, args=(far, near), daemon=True).start()
        _pump(near, far)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
