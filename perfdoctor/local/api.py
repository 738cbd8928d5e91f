"""The HTTP side of the model server: the part of OpenAI's API that a load test uses."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from aiohttp import web

from perfdoctor.local.body import BadBody, Wording, error_body, read_body
from perfdoctor.local.request import SETTINGS_PATH, Broken, Done, Piece, Request

if TYPE_CHECKING:
    from perfdoctor.local.engine import Engine

PROFILE_HEADER = "X-Perfdoctor-Profile"  # how many decode steps of this request to profile
PROFILE_LIMIT = 256
Event = Piece | Done | Broken


def application(engine: Engine, served: str) -> web.Application:
    """The routes. `served` is the one model name that requests may ask for."""
    api = _Api(engine, served)
    app = web.Application()
    app.add_routes(
        [
            web.get("/health", api.health),
            web.get("/v1/models", api.models),
            web.post("/v1/chat/completions", api.chat),
            web.post("/v1/completions", api.completions),
            web.post(SETTINGS_PATH, api.settings),
        ]
    )
    return app


async def listen(app: web.Application, port: int) -> tuple[web.AppRunner, str]:
    """Serves on loopback; (the runner to clean up, the URL). Port 0: any free one.

    A handler is cancelled when its client goes away: that is what frees the engine.
    """
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


class _Api:
    def __init__(self, engine: Engine, served: str) -> None:
        self._engine, self._served = engine, served
        self._ids = (f"local-{number}" for number in itertools.count(1))

    async def health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def models(self, _: web.Request) -> web.Response:
        entry = {"id": self._served, "object": "model", "created": 0, "owned_by": "perfdoctor-local"}
        return web.json_response({"object": "list", "data": [entry]})

    async def chat(self, http: web.Request) -> web.StreamResponse:
        return await self._answer(http, chat=True)

    async def completions(self, http: web.Request) -> web.StreamResponse:
        return await self._answer(http, chat=False)

    async def settings(self, http: web.Request) -> web.Response:
        """Seconds that the change took to rehearse, or the three lines of an error."""
        from perfdoctor.local.load import explain

        asked = {str(name): str(value) for name, value in (await http.json()).items()}
        try:
            return web.json_response({"compile_s": await asyncio.wrap_future(self._engine.use(asked))})
        except Exception as error:  # of any kind: loading and generating fail in many ways
            told = explain(error)
            return web.json_response({"what": told.what, "why": told.why, "do": told.do}, status=409)

    async def _answer(self, http: web.Request, chat: bool) -> web.StreamResponse:
        try:
            request = await self._read(http, chat)
        except BadBody as bad:
            return web.json_response(bad.answer(), status=bad.status)
        wording = Wording(request, self._served, int(time.time()))
        respond = self._stream if request.stream else self._whole
        return await respond(http, request, wording)

    async def _read(self, http: web.Request, chat: bool) -> Request:
        try:
            body = await http.json()
        except ValueError as error:
            raise BadBody(f"the body is no JSON: {error}") from error
        name = http.headers.get("X-Request-Id") or next(self._ids)
        return read_body(body, chat, self._served, name, profile_steps(http.headers.get(PROFILE_HEADER)))

    async def _whole(self, http: web.Request, request: Request, wording: Wording) -> web.Response:
        pieces: list[Piece] = []
        async with aclosing(_events(self._engine.submit, request)) as events:
            async for event in events:
                if isinstance(event, Done):
                    return web.json_response(wording.whole(pieces, event))
                if isinstance(event, Broken):
                    status = 500 if event.code is None else 400
                    return web.json_response(broken_body(event), status=status)
                pieces.append(event)
        raise AssertionError("the engine ends every request")

    async def _stream(self, http: web.Request, request: Request, wording: Wording) -> web.StreamResponse:
        """Headers and the role go out before the queue, so that they tell of the network alone."""
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )
        await response.prepare(http)
        if opening := wording.opening():
            await response.write(sse(opening))
        try:
            async with aclosing(_events(self._engine.submit, request)) as events:
                async for event in events:
                    for message in stream_messages(event, wording, request.include_usage):
                        await response.write(message)
            await response.write_eof()
        except ConnectionResetError:
            pass  # the client has gone; closing `events` has cancelled its generation
        return response


async def _events(submit: Callable[..., Callable[[], None]], request: Request) -> AsyncGenerator[Event, None]:
    """The engine's pieces and its one ending; leaving early, for whatever reason, cancels the generation."""
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[Event] = asyncio.Queue()

    def deliver(event: Event) -> None:
        loop.call_soon_threadsafe(events.put_nowait, event)

    cancel = submit(request, deliver)
    try:
        while True:
            event = await events.get()
            yield event
            if not isinstance(event, Piece):
                return
    finally:
        cancel()


def sse(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def broken_body(broken: Broken) -> dict[str, Any]:
    return error_body(broken.message, code=broken.code or "server_error")


def stream_messages(event: Event, wording: Wording, include_usage: bool) -> tuple[bytes, ...]:
    """What an event of the engine becomes on the wire."""
    if isinstance(event, Piece):
        return (sse(wording.piece(event)),)
    if isinstance(event, Broken):
        return (sse(broken_body(event)),)
    closing = sse(wording.closing(event))
    usage = (sse(wording.usage_event(event)),) if include_usage else ()
    return (closing, *usage, b"data: [DONE]\n\n")


def profile_steps(header: str | None) -> int:
    """How many steps the profile header asks for; BadBody when it is no number in range."""
    if header is None:
        return 0
    if not header.isdecimal() or not 1 <= int(header) <= PROFILE_LIMIT:
        raise BadBody(f"{PROFILE_HEADER} must be a number of steps from 1 to {PROFILE_LIMIT}")
    return int(header)
