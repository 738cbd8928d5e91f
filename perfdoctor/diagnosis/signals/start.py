"""What a running server's log says of its own start, and of the room it found for the KV cache."""

from __future__ import annotations

from functools import partial

from perfdoctor.diagnosis.measure import Measure, Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, known, ratio

_TOLD = {
    "start.weights.seconds": ("weights_s", "s", "Seconds the server took to read the weights into place"),
    "start.compile.seconds": ("compile_s", "s", "Seconds of torch.compile at the server's start"),
    "start.graphs.bytes": ("graph_bytes", "bytes", "Memory that the CUDA graphs of one device take"),
    "start.graphs.seconds": ("graph_s", "s", "Seconds the server took to capture CUDA graphs"),
    "engine.kv_tokens": ("kv_tokens", "tokens", "Tokens that the server's KV cache has room for"),
    "engine.kv_concurrency": ("kv_concurrency", "requests", "Requests of full length that fit the KV cache"),
}


ROUNDING_S = 0.5  # each: seconds of graphs are printed whole


def told(obs: Observations, name: str) -> float:
    """A number of `log.start`. NoValue when no log was given, or it has no such line.

    Of the last reading: a server that started again, or loaded a model, during the run told more.
    """
    value = obs.samples("log.start")[-1].values.get(name)
    if value is None:
        raise NoValue(f"the server's log does not tell {name} of its start")
    return value


def whole_and_parts(obs: Observations) -> tuple[float, dict[str, float]]:
    """Seconds of a start and of its parts by ledger row, disjoint as the engines nest them.

    The whole is from its banner to answering, where the lines have stamps; else what the engine adds up.
    """
    weights, model = _known(obs, "weights_s"), _known(obs, "model_s")
    compiled, trial = _known(obs, "compile_s"), _known(obs, "warmup_s")
    if not trial:  # the older line, which has compilation in it
        trial = max(0.0, _known(obs, "profile_s") - compiled)
    parts = {
        "weights": weights or model,
        "model_setup": max(0.0, model - weights) if weights else 0.0,
        "compile": compiled,
        "warmup": trial,
        "graph_capture": _known(obs, "graph_s"),
    }
    try:
        whole = told(obs, "start_s")
    except NoValue:
        whole = wall.of(obs)
    return whole, {row: seconds for row, seconds in parts.items() if seconds > 0}


def _known(obs: Observations, name: str) -> float:
    """0 for a part that no line tells of, which is then a part of what is unexplained."""
    return known(partial(told, obs, name)) or 0.0


def _told(name: str, metric: str, unit: str, meaning: str) -> Measure:
    page = (
        f"{meaning}, by its own log (`--log FILE`).\n\n"
        "Missing without a log, or when its lines do not tell. Cross-check: grep the log for the line."
    )
    return Measure(name, unit, lambda obs: told(obs, metric), page)


@signal("start.wall", unit="s")
def wall(obs: Observations) -> float:
    """Seconds from the first weight to a ready engine, by the server's log.

    Two parts that are logged, model and engine, or the one number of a runner. Process start and imports are
    not in it.
    """
    try:
        return told(obs, "model_s") + told(obs, "engine_s")
    except NoValue as missing:
        try:
            return told(obs, "runner_s")
        except NoValue:
            raise missing from None


@signal("engine.eager", unit="flag")
def eager(obs: Observations) -> Reading:
    """1 when the server launches each operation by itself, 0 when it replays CUDA graphs.

    By its command line, else by its log: the configuration that it prints at its start, or what it says of
    its decode steps. Missing where none of them tells. Cross-check: its command line, `ps -o args= -p PID`.
    """
    if obs.facts.target.eager is not None:
        return Reading(float(obs.facts.target.eager), source="its command line")
    try:
        return Reading(told(obs, "eager"), source="its log, at the start")
    except NoValue as missing:
        try:
            graphs = obs.phase("steady").gauge("log", "cuda_graph")
        except NoValue:
            raise missing from None
        return Reading(float(not any(graphs)), n=len(graphs), source="its log, of decode steps")


@signal("start.read.rate", unit="bytes/s")
def read_rate(obs: Observations) -> float:
    """Bytes of weights per second of reading them at the start, on one device, by the server's log.

    Below what the disk delivers when it is asked in one stream, reading was not the disk's business alone.
    """
    return ratio(told(obs, "weights_bytes"), told(obs, "weights_s"), "the time of reading the weights")


@signal("model.on_host.share", unit="share")
def on_host(obs: Observations) -> float:
    """Share of the model that runs on the CPU of a server that splits it: of its bytes, else of its layers.

    As the server's list of loaded models tells it (`/api/ps`), else its log (`offloaded 31/33 layers`).
    Missing where neither does. Cross-check: `curl URL/api/ps`.
    """
    share = obs.facts.target.on_host_share
    return told(obs, "on_host_share") if share is None else share


SIGNALS = (wall, eager, read_rate, on_host, *(_told(name, *row) for name, row in _TOLD.items()))
