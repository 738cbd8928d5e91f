"""Picks, bounds and fills in the fixes of one finding. Pure apart from reading the catalogue once."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal
from urllib.parse import urlsplit

from perfdoctor.diagnosis.catalogue import Fix, Variant, load_fixes
from perfdoctor.model import FixOffer, LedgerRow, RunFacts, TargetFacts

MAX_OFFERS = 4
NO_GAIN = 1.02  # a fix bounded below this is not worth a line: no measurement here resolves 2 %

# The rows that the rules of a class claim (their `cost`). A fix's gain is counted over these only, so that it
# cannot exceed the finding; a class without rows (the measurement itself) has no bound.
CLASS_ROWS: Mapping[str, frozenset[str]] = {
    "disk-io": frozenset({"storage_wait"}),
    "memory-bandwidth": frozenset({"decode.memory"}),
    "scheduling": frozenset({"server_queue"}),
    "launch-overhead": frozenset({"decode.launch_gap", "prefill.launch_gap"}),
    "page-cache": frozenset({"io_stall"}),
    "small-kernels": frozenset({"decode.compute"}),
    "overload": frozenset({"server_queue"}),
    "gil": frozenset({"gil_wait"}),
    "cpu-contention": frozenset({"runq_delay"}),
    "event-loop": frozenset({"loop_stall"}),
    "tokenizer": frozenset({"tokenise"}),
    "compute-prefill": frozenset({"prefill", "prefill.compute", "prefill.memory"}),
    "kv-cache": frozenset({"server_queue", "decode.compute", "decode.memory"}),
    "fragmentation": frozenset({"allocator"}),
    "pcie-offload": frozenset({"decode.transfer", "decode", "decode.compute", "decode.memory"}),
    "throttling": frozenset({"decode.compute", "prefill.compute"}),
    "gpu-contention": frozenset({"decode.compute", "decode.memory"}),
    "network": frozenset({"network", "connect"}),
}

# A local model's child is gone after the run; its fixes start a new server, here.
NEW_SERVER = "http://127.0.0.1:8000"
CONTEXT_PER_SLOT = 4096

_PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+)\}")
_VERDICT_ORDER = {"confirmed": 0, "conditional": 1}
_EFFORT_ORDER = {"configure": 0, "rewrite": 1, "buy": 2}


def offers(
    finding_class: str,
    facts: RunFacts,
    rows: Sequence[LedgerRow],
    fixes: Iterable[Fix] | None = None,
    rule: str | None = None,
) -> tuple[FixOffer, ...]:
    """At most four fixes for a finding: confirmed ones first, then by effort and by how much they may gain.

    `rows` are of the ledger the finding belongs to; without them nothing is bounded. `rule` leaves out what
    treats only other rules of the class.
    """
    known = load_fixes() if fixes is None else fixes
    chosen = [f for f in known if _applies(f, finding_class, rule, facts)]
    bounded = [(fix, bound(fix, finding_class, rows)) for fix in chosen]
    useful = [(fix, gain) for fix, gain in bounded if gain is None or gain[1] >= NO_GAIN]
    useful.sort(key=lambda pair: _rank(*pair))
    return tuple(_offer(fix, gain, facts) for fix, gain in useful[:MAX_OFFERS])


def bound(fix: Fix, finding_class: str, rows: Sequence[LedgerRow]) -> tuple[float, float] | None:
    """Speed-up factor between which the fix can land (Amdahl), or None when no row it removes is known."""
    touched = frozenset(fix.removes) & CLASS_ROWS.get(finding_class, frozenset())
    shares = [r.share for r in rows if r.row in touched]
    return amdahl(sum(shares), fix.leaves) if shares else None


def amdahl(share: float, leaves: tuple[float, float]) -> tuple[float, float]:
    """(least, most) factor when `share` of the time shrinks to between leaves[0] and leaves[1] of itself."""
    touched = min(max(share, 0.0), 1.0)
    low, high = leaves
    return 1 / (1 - touched * (1 - high)), 1 / (1 - touched * (1 - low))


def device_of(facts: RunFacts) -> Literal["cpu", "cuda"] | None:
    """Where the model runs; None when it cannot be told, which hides no fix."""
    device = facts.target.device or ""
    if device.startswith(("cuda", "gpu")):
        return "cuda"
    if device.startswith("cpu"):
        return "cpu"
    # Nobody said: a server on this host, and this host has no GPU.
    here = bool(facts.host.hostname) and not facts.target.remote
    return "cpu" if here and not facts.host.gpus else None


def fill(template: str, values: Mapping[str, str | None]) -> str:
    """The template with its `{placeholders}` shell-quoted; an unknown one is shown as `<name>`."""

    def value_of(match: re.Match[str]) -> str:
        value = values[match.group(1)]
        # A control character could smuggle a second command into what the user pastes.
        return shlex.quote(value) if value and value.isprintable() else f"<{match.group(1)}>"

    return _PLACEHOLDER.sub(value_of, template)


def placeholder_values(facts: RunFacts) -> dict[str, str | None]:
    """What commands may refer to. None: this run does not know it."""
    target, scenario = facts.target, facts.scenario
    url = NEW_SERVER if target.kind == "local" else target.url
    concurrency = scenario.load.concurrency
    return {
        "model": scenario.target.model or target.model,
        "model_path": target.model_path,
        "served": scenario.target.served_name or target.model,
        "url": url or None,
        "port": _port(url),
        "pid": None if target.pid is None or target.kind == "local" else str(target.pid),
        "concurrency": str(concurrency),
        "half_concurrency": str(max(1, concurrency // 2)),
        "double_concurrency": str(2 * concurrency),
        "context": str(CONTEXT_PER_SLOT * concurrency),
        "cores": str(facts.host.cores) if facts.host.cores else None,
        "half_cores": str(max(1, facts.host.cores // 2)) if facts.host.cores else None,
    }


def _port(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:  # a port that is no number
        return None
    return str(port) if port else None


def _applies(fix: Fix, finding_class: str, rule: str | None, facts: RunFacts) -> bool:
    target: TargetFacts = facts.target
    device = device_of(facts)
    return (
        fix.verdict != "refuted"
        and fix.treats(finding_class, rule)
        and (not fix.engines or target.engine in fix.engines)
        and (not fix.devices or device is None or device in fix.devices)
        and (not fix.dtypes or target.dtype is None or target.dtype in fix.dtypes)
    )


def _rank(fix: Fix, gain: tuple[float, float] | None) -> tuple[int, int, float, float, str]:
    """Surest and least effort first, then by the middle of the bound (geometric, these are factors): its
    upper end alone rewards vagueness."""
    low, high = gain or (1.0, 1.0)
    effort = _EFFORT_ORDER[fix.effort]
    return _VERDICT_ORDER[fix.verdict], effort, -math.sqrt(low * high), sum(fix.leaves), fix.id


def _offer(fix: Fix, gain: tuple[float, float] | None, facts: RunFacts) -> FixOffer:
    values = placeholder_values(facts)
    own = fix.per_engine.get(facts.target.engine, Variant())
    return FixOffer(
        id=fix.id,
        title=fix.title,
        verdict=fix.verdict,
        bound=gain,
        source=fix.source,
        claim=fix.claim,
        precondition=fix.precondition,
        contraindication=fix.contraindication,
        risk=fix.risk,
        changes_output=fix.changes_output,
        needs_restart=fix.needs_restart,
        first_call=fix.first_call,
        rollback=fix.rollback,
        measured=fix.measured,
        commands=tuple(fill(c, values) for c in own.commands or fix.commands),
        verify=fill(own.verify or fix.verify, values),
    )
