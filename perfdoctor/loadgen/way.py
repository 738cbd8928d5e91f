"""The way from a prompt to a target: source, protocol, transport, and what belongs to them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfdoctor.clock import Clock
from perfdoctor.errors import UsageError
from perfdoctor.loadgen.prompts._prompt import Prompt, Source
from perfdoctor.loadgen.protocols._protocol import Ask, Protocol, make_protocol
from perfdoctor.loadgen.refusal import Verdicts
from perfdoctor.loadgen.replay import Trace, read_trace
from perfdoctor.loadgen.tokens import Counter, load_counter
from perfdoctor.loadgen.transports._choose import make_transport
from perfdoctor.loadgen.transports._transport import Transport
from perfdoctor.loadgen.urls import completion_url, cut
from perfdoctor.model import Load, Prompts, Target
from perfdoctor.redact import Redactor, clean_url, header_secrets, url_secrets
from perfdoctor.registry import load_member

_NO_MODEL = "default"  # most single-model servers take any name


@dataclass(frozen=True, slots=True)
class Way:
    """`ask` is what all requests have in common. A `trace` brings its own prompts, for the replay alone.

    `counter` counts the tokens of answers whose server does not.
    """

    source: Source
    protocol: Protocol
    transport: Transport
    path: str
    ask: Ask
    redactor: Redactor
    verdicts: Verdicts
    trace: Trace | None = None
    counter: Counter | None = None


def find_way(target: Target, load: Load, clock: Clock, secret: str | None) -> Way:
    endpoint = target.endpoint or ""
    source, trace, protocol = _contents(target, load, clock.zero_ns)
    url = endpoint if protocol.absolute else completion_url(endpoint, protocol.path)
    origin, path = cut(url)
    ask = Ask(
        target.served_name or target.model or _NO_MODEL,
        messages=(),
        max_tokens=0,
        temperature=load.temperature,
        stream=target.stream,
        per_chunk=load.prompts.count_per_chunk,
        extra=target.extra_body,
        keep_text=load.prompts.tokenizer is not None,
    )
    return Way(
        source=source,
        protocol=protocol,
        transport=make_transport(origin, _headers(target, protocol, secret), target.wire, load),
        path=path,
        ask=ask,
        redactor=Redactor([secret or "", *header_secrets(target.headers), *url_secrets(endpoint)]),
        verdicts=Verdicts(clean_url(url), ask.model, has_key=bool(secret)),
        trace=trace,
        counter=load_counter(load.prompts.tokenizer) if load.prompts.tokenizer else None,
    )


def check_contents(target: Target, load: Load) -> None:
    """UsageError for files, lengths, templates and tokenizers that no request can be made of. Files are read
    once more than needed, so that a bad one leaves no run folder behind."""
    if not target.endpoint and target.api not in ("chat", "completions"):
        raise UsageError(
            f"the local model is not served by --api {target.api}",
            "It speaks chat and completions.",
            "leave --api out, or name a server: --endpoint URL",
        )
    _contents(target, load, 0)
    if load.prompts.tokenizer:
        load_counter(load.prompts.tokenizer)


def _contents(target: Target, load: Load, run: int) -> tuple[Source, Trace | None, Protocol]:
    """What requests will say, and in which words."""
    source = make_source(load.prompts, load, run)
    trace = read_trace(Path(load.replay), load.prompts, load.seed, run) if load.replay else None
    said = trace.source if trace else source
    protocol = make_protocol(target, load.seed, said.variables, said.speaks)
    if protocol.fixed:
        source = _Nothing()
    elif not protocol.tokens:
        source = said  # the variables of a template stand in its rows alone
    return source, trace, protocol


def make_source(prompts: Prompts, load: Load, run: int) -> Source:
    make = load_member("perfdoctor.loadgen.prompts", prompts.source, "SOURCE")[0]
    made: Source = make(prompts, load.seed, run)
    return made


class _Nothing:
    """A source for requests that say nothing of a prompt; making one costs more than such a request."""

    count: int | None = None
    variables: tuple[str, ...] = ()
    speaks = True
    _prompt = Prompt((), 0)

    def prompt(self, request: int) -> Prompt:
        return self._prompt


def _headers(target: Target, protocol: Protocol, secret: str | None) -> dict[str, str]:
    """Those that are the same in every request."""
    kind = {"Content-Type": protocol.content_type} if protocol.content_type else {}
    key = {"Authorization": f"Bearer {secret}"} if secret else {}
    given = {name: value for name, value in target.headers.items() if name not in protocol.fills_headers}
    return {**kind, "Accept": protocol.accept, **key, **given}
