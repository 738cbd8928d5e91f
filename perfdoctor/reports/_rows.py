"""The ledger's rows in words: a title, what the time is spent on, and a colour class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfdoctor import units
from perfdoctor.model import Ledger, LedgerRow


@dataclass(frozen=True, slots=True)
class Kind:
    title: str
    meaning: str
    colour: str  # a class of report.css


KINDS = {
    "client_wait": Kind("Client wait", "the load generator had not sent it yet", "slate"),
    "connect": Kind("Connect", "opening the connection", "slate"),
    "network": Kind("Network", "bytes under way", "slate"),
    "server_queue": Kind("Server queue", "waiting for its turn in the server", "amber"),
    "tokenise": Kind("Tokenise", "turning the prompt into tokens", "lime"),
    "prefill": Kind("Prefill", "reading the prompt, not divided further", "teal"),
    "prefill.compute": Kind("Prefill: compute", "arithmetic on the prompt", "teal"),
    "prefill.memory": Kind("Prefill: memory", "moving weights while reading the prompt", "cyan"),
    "prefill.launch_gap": Kind("Prefill: launch gap", "the device waits for the host", "orange"),
    "decode": Kind("Decode", "generating tokens, not divided further", "blue"),
    "decode.memory": Kind("Decode: memory", "reading weights and cache for each token", "blue"),
    "decode.compute": Kind("Decode: compute", "arithmetic for each token", "indigo"),
    "decode.launch_gap": Kind("Decode: launch gap", "the device or the arithmetic waits for the host", "red"),
    "decode.sync": Kind("Decode: sync", "the host waits for the device", "pink"),
    "decode.transfer": Kind("Decode: transfer", "copies between host and device", "purple"),
    "allocator": Kind("Allocator", "getting and freeing device memory", "purple"),
    "io_stall": Kind("IO stall", "blocked on storage", "brown"),
    "runq_delay": Kind("Run-queue delay", "ready to run, but no CPU", "orange"),
    "gil_wait": Kind("GIL wait", "another thread holds Python's lock", "pink"),
    "storage_wait": Kind("Storage wait", "weights not there yet", "brown"),
    "deserialise": Kind("Deserialise", "CPU work: parse, convert, place", "indigo"),
    "host_to_device": Kind("Host to device", "copying weights to the device", "purple"),
    "weights": Kind("Weights", "reading weights into place, by the log", "brown"),
    "model_setup": Kind("Model setup", "what loading does besides reading weights, by the log", "indigo"),
    "compile": Kind("Compile", "torch.compile", "teal"),
    "warmup": Kind("Warm-up", "the trial run that measures memory", "cyan"),
    "graph_capture": Kind("Graph capture", "recording CUDA graphs", "purple"),
    "import": Kind("Import", "loading the libraries", "slate"),
    "first_forward": Kind("First forward", "warm-up and compilation", "teal"),
    "unexplained": Kind("Unexplained", "no probe accounts for it", "unexplained"),
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A stacked bar and its table. `total` is the whole time as text."""

    name: str
    total: str
    rows: tuple[LedgerRow, ...]
    description: str


def kind_of(row: str) -> Kind:
    """A row that a newer version added shows under its own id."""
    return KINDS.get(row, Kind(row, "", "slate"))


def worth_showing(row: LedgerRow) -> bool:
    """Rows that took time, and always what no probe accounts for."""
    return row.seconds > 0 or row.row == "unexplained"


def bars(ledger: Ledger) -> tuple[Bar, ...]:
    """Mean, p95 and load, each where it is known; rows without time take no room."""
    parts = (("Mean request", ledger.mean), ("p95 request", ledger.p95), ("Model load", ledger.load))
    return tuple(_bar(name, rows) for name, rows in parts if rows)


def _bar(name: str, rows: Sequence[LedgerRow]) -> Bar:
    shown = tuple(r for r in rows if worth_showing(r))
    total = units.seconds(sum(r.seconds for r in rows))
    said = ", ".join(f"{kind_of(r.row).title} {units.share(r.share)}" for r in shown)
    return Bar(name, total, shown, f"{name}, {total}: {said}")
