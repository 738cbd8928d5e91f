"""Which server program answers, from what it says of itself and from its command line. Pure.

The strongest mark wins: a field of its model list, then an endpoint that only it has, its Server header, the
prefix of its metrics, and last the command line of the listening process. A proxy in front may hide all but
the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from perfdoctor.preflight.control import Answer

# Asked of every server, in this order. /props is llama.cpp's, /info TGI's, /server_info SGLang's (the older
# name second), /api/version and /api/ps ollama's; /openapi.json tells FastAPI programs apart.
PATHS = (
    "/version",
    "/props",
    "/info",
    "/server_info",
    "/get_server_info",
    "/api/version",
    "/api/ps",
    "/openapi.json",
    "/metrics",
)

OWNERS = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llama.cpp",
    "tensorrt_llm": "tensorrt-llm",
    "perfdoctor-local": "perfdoctor-local",
}
METRIC_PREFIXES = {
    "vllm:": "vllm",
    "sglang:": "sglang",
    "sglang_": "sglang",
    "tgi_": "tgi",
    "llamacpp:": "llama.cpp",
    "nv_inference_": "triton",
    "trtllm_": "tensorrt-llm",
}
PROGRAMS = {  # a word of the command line: whole, as a file's name, or as the first part of a module's name
    "vllm": "vllm",
    "sglang": "sglang",
    "text-generation-launcher": "tgi",
    "text-generation-router": "tgi",
    "llama-server": "llama.cpp",
    "llama-cpp-server": "llama.cpp",
    "ollama": "ollama",
    "tritonserver": "triton",
    "trtllm-serve": "tensorrt-llm",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """All that was gathered. `answers` holds those of PATHS that came with status 200."""

    models: tuple[Mapping[str, Any], ...] = ()
    server_header: str = ""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    command: tuple[str, ...] = ()  # of the listening process; its children may be anything

    def told(self, path: str) -> Mapping[str, Any]:
        """The JSON object at a path; empty when there is none."""
        answer = self.answers.get(path)
        return answer.body if answer and isinstance(answer.body, dict) else {}


@dataclass(frozen=True, slots=True)
class Engine:
    name: str = "unknown"
    source: str = "no known field, endpoint, metric or command line"
    version: str | None = None
    max_batch: int | None = None  # requests served together; None: not told


def recognise(seen: Seen) -> Engine:
    for test in (_by_owner, _by_endpoint, _by_header, _by_metrics, _by_command):
        found = test(seen)
        if found:
            name, source = found
            return Engine(name, source, _version(name, seen), _max_batch(name, seen))
    return Engine()


def option(command: Sequence[str], *names: str) -> str | None:
    """The value of a command-line option, written `--name value` or `--name=value`; the first found."""
    for word, following in zip(command, (*command[1:], ""), strict=False):
        key, equals, value = word.partition("=")
        if key in names:
            return value if equals else following
    return None


def model_source(engine: str, model: Mapping[str, Any], seen: Seen) -> str | None:
    """Where the server says that its weights are: a path, or a hub name. None: it does not say."""
    told: Mapping[str, Callable[[], Any]] = {
        "vllm": lambda: model.get("root") or option(seen.command, "--model"),
        "sglang": lambda: _sglang(seen).get("model_path") or option(seen.command, "--model-path", "--model"),
        "tgi": lambda: seen.told("/info").get("model_id"),
        "llama.cpp": lambda: seen.told("/props").get("model_path") or option(seen.command, "--model", "-m"),
        "transformers-serve": lambda: model.get("id"),
        "perfdoctor-local": lambda: option(seen.command, "--model"),
    }
    value = told[engine]() if engine in told else None
    return value if isinstance(value, str) and value else None


def on_host_share(engine: str, seen: Seen) -> float | None:
    """Share of the loaded models' bytes that are not in GPU memory, where the server tells it; else None."""
    models = seen.told("/api/ps").get("models") if engine == "ollama" else None
    sizes = [(m.get("size"), m.get("size_vram")) for m in models or () if isinstance(m, dict)]
    known = [
        (size, vram) for size, vram in sizes if isinstance(size, int) and isinstance(vram, int) and size > 0
    ]
    if not known:
        return None
    return 1 - min(1.0, sum(vram for _, vram in known) / sum(size for size, _ in known))


def _sglang(seen: Seen) -> Mapping[str, Any]:
    return seen.told("/server_info") or seen.told("/get_server_info")


def _by_owner(seen: Seen) -> tuple[str, str] | None:
    for model in seen.models:
        owner = str(model.get("owned_by", "")).lower()
        if owner in OWNERS:
            return OWNERS[owner], f"owned_by '{owner}' in /v1/models"
    return None


def _by_endpoint(seen: Seen) -> tuple[str, str] | None:
    if "total_slots" in seen.told("/props"):
        return "llama.cpp", "/props"
    info = seen.told("/info")
    if "text-generation" in str(info.get("router", "")) or {"model_id", "max_total_tokens"} <= info.keys():
        return "tgi", "/info"
    if "model_path" in _sglang(seen):
        return "sglang", "/server_info"
    if "version" in seen.told("/api/version"):
        return "ollama", "/api/version"
    paths = seen.told("/openapi.json").get("paths", {})
    if isinstance(paths, dict) and {"/load_model", "/v1/responses"} <= paths.keys():
        return "transformers-serve", "/openapi.json has /load_model"
    return None


def _by_header(seen: Seen) -> tuple[str, str] | None:
    header = seen.server_header
    return ("llama.cpp", f"Server header '{header}'") if "llama.cpp" in header.lower() else None


def _by_metrics(seen: Seen) -> tuple[str, str] | None:
    answer = seen.answers.get("/metrics")
    for line in answer.text.splitlines() if answer else ():
        for prefix, engine in METRIC_PREFIXES.items():
            if line.startswith(prefix):
                return engine, f"metrics named {prefix}*"
    return None


def _by_command(seen: Seen) -> tuple[str, str] | None:
    words = {part for word in seen.command[:4] for part in (PurePath(word).name, word.split(".")[0])}
    if {"transformers", "serve"} <= words:
        return "transformers-serve", "command line 'transformers serve'"
    for program, engine in PROGRAMS.items():
        if program in words:
            return engine, f"command line '{program}'"
    return None


def _version(engine: str, seen: Seen) -> str | None:
    told: Mapping[str, Any] = {
        "vllm": seen.told("/version").get("version"),
        "tensorrt-llm": seen.told("/version").get("version"),
        "sglang": _sglang(seen).get("version"),
        "tgi": seen.told("/info").get("version"),
        "llama.cpp": seen.told("/props").get("build_info"),
        "ollama": seen.told("/api/version").get("version"),
    }
    value = told.get(engine)
    return value if isinstance(value, str) and value else None


def _max_batch(engine: str, seen: Seen) -> int | None:
    if engine == "perfdoctor-local":
        return 1
    if engine == "transformers-serve":
        # without the flag one thread generates, request after request; unseen command line: not known
        return 1 if seen.command and "--continuous-batching" not in seen.command else None
    told: Mapping[str, Any] = {
        "vllm": option(seen.command, "--max-num-seqs", "--max_num_seqs"),
        "sglang": _sglang(seen).get("max_running_requests"),
        "tgi": seen.told("/info").get("max_batch_size"),
        "llama.cpp": seen.told("/props").get("total_slots"),
    }
    try:
        return int(told[engine])
    except (KeyError, TypeError, ValueError):
        return None
