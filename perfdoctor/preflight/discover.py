"""Endpoint discovery: asks the server, looks at the process that listens, and puts the facts together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from perfdoctor.errors import Unreachable, UsageError
from perfdoctor.model import Target, TargetFacts, Wire
from perfdoctor.preflight import nearby
from perfdoctor.preflight.control import Answer, Control, normalise, whole_url
from perfdoctor.preflight.engines import PATHS, Engine, Seen, model_source, on_host_share, option, recognise
from perfdoctor.preflight.failures import port_of
from perfdoctor.preflight.gguf import measure_gguf
from perfdoctor.preflight.names import choose
from perfdoctor.preflight.processes import Processes, behind, locate
from perfdoctor.preflight.replies import read_models
from perfdoctor.preflight.weights import Weights, measure_folder
from perfdoctor.probes._processes import is_this_host

GATHER_S = 3.0  # for all of them together; a server that hangs is driven without its engine's name
EAGER = {"--enforce-eager", "--enforce_eager", "--disable-cuda-graph"}  # vLLM's flags and SGLang's
PLACES = {"ollama": ("/api/ps",)}  # who tells where it put the model, and where
DTYPES = {
    "half": "float16",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "float32": "float32",
}


def discover(target: Target, secret: str | None) -> TargetFacts:
    """What answers at the endpoint. Raises a TargetError when it cannot be driven."""
    if not target.endpoint:
        raise UsageError("no endpoint was named", "", "add --endpoint URL")
    if target.api == "http":
        return _any_http(target.endpoint, target.wire)
    with Control(target.endpoint, secret, target.headers, target.wire) as control:
        first = _first_answer(control, target.wire)
        models = read_models(first, control, target, bool(secret))
        answers = _gather(control)
    local = _is_local(control.root, target.wire)
    processes = _processes(control.root, target.wire)
    seen = Seen(models, first.headers.get("server", ""), answers, processes.command)
    engine = recognise(seen)
    model = choose(models, target.model, engine.name, control.root)
    return _facts(control.root, local, target, engine, model, seen, processes)


def placement(target: Target, facts: TargetFacts, secret: str | None) -> float | None:
    """Share of the model that is not in GPU memory, asked again: some load it for the first request only."""
    if not target.endpoint or facts.engine not in PLACES:
        return facts.on_host_share
    with Control(target.endpoint, secret, target.headers, target.wire) as control:
        found = on_host_share(facts.engine, Seen(answers=control.get_all(PLACES[facts.engine], GATHER_S)))
    return facts.on_host_share if found is None else found


def address(target: Target) -> str:
    """Where a target is, as it may be shown. UsageError or NotOpenai when that is no usable URL."""
    return (whole_url if target.api == "http" else normalise)(target.endpoint or "")


def _is_local(url: str, wire: Wire) -> bool:
    """A unix socket is of this host; what is behind a proxy is not known to be."""
    return bool(wire.unix_socket) or (not wire.proxy and is_this_host(urlsplit(url).hostname or ""))


def _processes(url: str, wire: Wire) -> Processes:
    """Those that listen on the URL's port of this host; a unix socket's are not looked for."""
    return behind(port_of(url)) if _is_local(url, wire) and not wire.unix_socket else Processes()


def _any_http(endpoint: str, wire: Wire) -> TargetFacts:
    """Nothing is asked of it: a request to any path may have effects, and there is no model to look for."""
    url = whole_url(endpoint)
    processes = _processes(url, wire)
    return TargetFacts(
        kind="endpoint",
        url=url,
        remote=not _is_local(url, wire),
        engine="http",
        pid=processes.pid,
        pids=processes.pids,
    )


def _first_answer(control: Control, wire: Wire) -> Answer:
    try:
        return control.get("/v1/models")
    except Unreachable as gone:
        plain = _is_local(control.root, wire) and not wire.unix_socket
        found = nearby.find_local_server(nearby.PORTS).url if plain else None
        if found and found != control.root:
            raise Unreachable(
                gone.what, gone.why, f"a server answers at {found}: --endpoint {found}"
            ) from gone
        raise


def _gather(control: Control) -> dict[str, Answer]:
    answers = control.get_all(PATHS, GATHER_S).items()
    return {path: answer for path, answer in answers if answer.status == 200 and not answer.is_page}


def _facts(
    root: str,
    local: bool,
    target: Target,
    engine: Engine,
    model: Mapping[str, Any],
    seen: Seen,
    processes: Processes,
) -> TargetFacts:
    source = model_source(engine.name, model, seen)
    path = locate(source, processes) if source and local else None
    weights = _weights(path, engine.name, model, seen)
    renamed = target.model not in (None, model["id"], *(model.get("aliases") or ()))
    note = f"; it ignores model names: '{target.model}' is answered by '{model['id']}'" if renamed else ""
    return TargetFacts(
        kind="endpoint",
        url=root,
        remote=not local,
        engine=engine.name,
        engine_version=engine.version,
        engine_source=engine.source + note,
        model=model["id"],
        model_path=str(path) if path else None,
        parameters=weights.parameters,
        dtype=weights.dtype,
        device=option(seen.command, "--device"),
        weights_bytes=weights.weights_bytes,
        file_bytes=weights.file_bytes,
        step_bytes=weights.step_bytes,
        step_flops=weights.step_flops,
        kv_bytes_per_token=weights.kv_bytes_per_token,
        eager=eager(seen.command),
        on_host_share=on_host_share(engine.name, seen),
        roof_refused=roof_refused(weights.experts, seen.command),
        max_batch=engine.max_batch,
        pid=processes.pid,
        pids=processes.pids,
    )


def _weights(path: Path | None, engine: str, model: Mapping[str, Any], seen: Seen) -> Weights:
    """Sizes from the files when they can be seen, else what the model list tells."""
    measured = None
    if path and path.is_dir() and not _quantised_at_load(seen.command):
        asked = option(seen.command, "--dtype", "--torch-dtype") or "auto"
        measured = measure_folder(path, DTYPES.get(asked))
        if measured and engine == "vllm" and asked == "auto" and measured.dtype == "float32":
            measured = measure_folder(path, "bfloat16")  # vLLM's auto halves float32
    elif path and path.is_file():
        measured = measure_gguf(path)
    if measured:
        return measured
    meta = model.get("meta")
    told = meta if isinstance(meta, dict) else {}
    return Weights(parameters=_count(told.get("n_params")), weights_bytes=_count(told.get("size")))


def eager(command: Sequence[str]) -> bool | None:
    """True where the command line switches CUDA graphs off; else a file or a variable may, so None."""
    return True if EAGER & set(command) else None


def roof_refused(experts: bool, command: Sequence[str]) -> str | None:
    """Why the weights' bytes over the bandwidth are no limit of this server; None where they are."""
    if experts:
        return "a mixture of experts reads other weights for each token, so a batch reads more than one token"
    words = " ".join(command)
    if re.search(r"--spec(ulative|-)|--draft", words):
        return "speculative decoding emits several tokens a step"
    split = option(command, "--tensor-parallel-size", "-tp", "--tp", "--num-shard")
    if split and split != "1":
        return f"the weights are split over {split} devices, and their exchange is not counted"
    return None


def _quantised_at_load(command: Sequence[str]) -> bool:
    """Whether the server makes its weights smaller while loading, so that the files' sizes mislead."""
    flags = ("--quantization", "-q", "--quantize", "--load-in-4bit", "--load-in-8bit")
    return any(word.partition("=")[0] in flags for word in command)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
