"""The pure parts of endpoint discovery: recognising engines, choosing a model."""

from __future__ import annotations

import http.server
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.resources import files
from typing import Any

import pytest

from perfdoctor.errors import UnknownModel, UsageError
from perfdoctor.model import Target, TargetFacts
from perfdoctor.preflight import discover, placement
from perfdoctor.preflight.control import Answer, Control, normalise, whole_url
from perfdoctor.preflight.engines import Seen, model_source, on_host_share, option, recognise
from perfdoctor.preflight.names import choose

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Scripted:
    """A server that answers these paths; others with 404, or never."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.hangs, self.url = False, ""
        self.over = threading.Event()


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    script = Scripted()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            script.asked.append(self.path)
            body = script.answers.get(self.path)
            if body is None and script.hangs:
                script.over.wait(10.0)
            with suppress(OSError):  # it was not waited for
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        script.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield script
        script.over.set()
        server.shutdown()
        thread.join()


def told(**bodies: Any) -> dict[str, Answer]:
    """Answers by path; `_` in a keyword stands for `/`."""
    return {"/" + name.replace("__", "/"): Answer(200, body=body) for name, body in bodies.items()}


# --------------------------------------------------------------------------------- engines


@pytest.mark.parametrize(
    ("engine", "seen"),
    [
        ("vllm", Seen(models=({"id": "m", "owned_by": "vllm"},))),
        ("vllm", Seen(answers={"/metrics": Answer(200, text="# HELP x\nvllm:num_requests_running 0")})),
        ("vllm", Seen(command=("/venv/bin/python3", "/venv/bin/vllm", "serve", "m"))),
        ("vllm", Seen(command=("python", "-m", "vllm.entrypoints.openai.api_server"))),
        ("sglang", Seen(answers=told(get_server_info={"model_path": "/m"}))),
        ("sglang", Seen(command=("python3", "-m", "sglang.launch_server"))),
        ("tgi", Seen(answers=told(info={"model_id": "m", "router": "text-generation-router"}))),
        ("llama.cpp", Seen(answers=told(props={"total_slots": 4}))),
        ("llama.cpp", Seen(server_header="llama.cpp")),
        ("llama.cpp", Seen(command=("/opt/llama-server", "-m", "x.gguf"))),
        ("ollama", Seen(answers=told(api__version={"version": "0.9.0"}))),
        ("triton", Seen(answers={"/metrics": Answer(200, text='nv_inference_count{model="m"} 1')})),
        ("triton", Seen(command=("/opt/tritonserver/bin/tritonserver", "--model-repository=/m"))),
        ("transformers-serve", Seen(command=("python", "/bin/transformers", "serve", "m"))),
        ("perfdoctor-local", Seen(models=({"id": "m", "owned_by": "perfdoctor-local"},))),
        ("unknown", Seen(server_header="uvicorn", command=("python", "app.py"))),
        ("unknown", Seen()),
    ],
)
def test_engine_is_recognised_by_any_of_its_marks(engine: str, seen: Seen) -> None:
    """Each mark is enough alone, and the source of the verdict is told."""
    found = recognise(seen)

    assert engine == found.name
    assert found.source


def test_own_words_win_over_the_command_line() -> None:
    """A server started by a wrapper named after another engine is what it says it is."""
    seen = Seen(models=({"id": "m", "owned_by": "sglang"},), command=("vllm", "serve"))

    assert "sglang" == recognise(seen).name


def test_a_model_folder_named_like_an_engine_is_no_mark() -> None:
    """A path in an argument is not the program."""
    seen = Seen(command=("python", "app.py", "--host", "0.0.0.0", "--model", "/models/vllm"))

    assert "unknown" == recognise(seen).name


@pytest.mark.parametrize(
    ("batch", "seen"),
    [
        (4, Seen(answers=told(props={"total_slots": 4}))),
        (64, Seen(command=("vllm", "serve", "m", "--max-num-seqs", "64"))),
        (64, Seen(command=("vllm", "serve", "m", "--max-num-seqs=64"))),
        (None, Seen(command=("vllm", "serve", "m"))),
        (None, Seen(answers=told(info={"router": "text-generation-router", "max_batch_size": None}))),
        (1, Seen(command=("transformers", "serve", "m"))),
        (None, Seen(command=("transformers", "serve", "m", "--continuous-batching"))),
    ],
)
def test_batch_limit_is_told_or_unknown(batch: int | None, seen: Seen) -> None:
    """A limit that nobody tells is None; a plain transformers server is known to be serial."""
    assert batch == recognise(seen).max_batch


def test_remote_transformers_server_is_not_called_serial() -> None:
    """Without its command line nobody knows whether it batches."""
    seen = Seen(answers=told(**{"openapi.json": {"paths": {"/load_model": {}, "/v1/responses": {}}}}))

    found = recognise(seen)

    assert ("transformers-serve", None) == (found.name, found.max_batch)


@pytest.mark.parametrize(
    ("share", "models"),
    [
        (0.25, [{"size": 8_000, "size_vram": 6_000}]),
        (0.0, [{"size": 8_000, "size_vram": 8_000}]),
        (1.0, [{"size": 8_000, "size_vram": 0}]),
        (None, []),
        (None, [{"size": 8_000}]),
        (None, [{"size": 0, "size_vram": 0}]),
    ],
)
def test_what_is_not_in_gpu_memory(share: float | None, models: list[dict[str, int]]) -> None:
    """Of the loaded bytes; unloaded, it is not known, and no other server is asked."""
    seen = Seen(answers=told(api__ps={"models": models}))

    assert share == on_host_share("ollama", seen)
    assert on_host_share("vllm", seen) is None


def test_a_model_loaded_for_the_first_request_is_looked_for_again(scripted: Scripted) -> None:
    """Before the load the list was empty; only servers that tell it are asked."""
    scripted.answers = {"/api/ps": b'{"models": [{"size": 100, "size_vram": 75}]}'}
    target = Target(endpoint=scripted.url)

    assert 0.25 == placement(target, TargetFacts(engine="ollama"), None)
    assert placement(target, TargetFacts(engine="vllm"), None) is None
    assert ["/api/ps"] == scripted.asked
    scripted.answers = {}
    assert 0.1 == placement(target, TargetFacts(engine="ollama", on_host_share=0.1), None)


def test_pages_are_asked_for_together(scripted: Scripted) -> None:
    """A server whose answers hang costs one wait and not one each; those that came count."""
    scripted.answers, scripted.hangs = {"/version": b'{"version": "1"}'}, True
    with Control(scripted.url) as control:
        began = time.monotonic()
        found = control.get_all(("/a", "/b", "/version", "/c"), 0.4)
        took = time.monotonic() - began

    assert {"/version": {"version": "1"}} == {path: answer.body for path, answer in found.items()}
    assert took < 1.0


def test_version_is_the_server_s_own() -> None:
    """Told at the engine's own path; another program's /version is not believed for it."""
    vllm = Seen(models=({"id": "m", "owned_by": "vllm"},), answers=told(version={"version": "0.11.0"}))
    unknown = Seen(answers=told(version={"version": "1.2"}))

    assert "0.11.0" == recognise(vllm).version
    assert recognise(unknown).version is None


def test_model_source_of_vllm_prefers_the_list() -> None:
    """`root` is what was loaded; the command line serves when a proxy hides it."""
    seen = Seen(command=("python", "-m", "vllm.entrypoints.openai.api_server", "--model", "/m"))

    assert "/root" == model_source("vllm", {"root": "/root"}, seen)
    assert "/m" == model_source("vllm", {}, seen)
    assert model_source("unknown", {"id": "m"}, seen) is None


def test_option_is_read_in_both_forms() -> None:
    """`--x value` and `--x=value`; a flag at the end has an empty value, an absent one none."""
    assert "1" == option(("a", "--x", "1"), "--x")
    assert "1" == option(("a", "--x=1"), "--x")
    assert "" == option(("a", "--x"), "--x")
    assert option(("a",), "--x") is None


def test_metric_names_have_the_agreed_shape() -> None:
    """engine -> kind -> our name -> exact names; every sum has its count where the engine counts."""
    table = tomllib.loads(files("perfdoctor").joinpath("data/engines.toml").read_text("utf-8"))

    assert {
        "vllm", "sglang", "tgi", "llama.cpp", "triton", "tensorrt-llm", "ollama", "transformers-serve",
        "perfdoctor-local",
    } == table.keys()  # fmt: skip
    for kinds in table.values():
        assert ("none" in kinds) != ({"gauges", "counters"} <= kinds.keys())
        for names in (*kinds.get("gauges", {}).values(), *kinds.get("counters", {}).values()):
            assert names and all(isinstance(name, str) for name in names)


# --------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("asked", "entries"),
    [
        (None, [{"id": "m"}]),
        ("m", [{"id": "other"}, {"id": "m"}]),
        ("alias", [{"id": "m", "aliases": ["alias"]}]),
        (None, [{"id": "m"}, {"id": "adapter", "parent": "m"}]),
        (None, [{"id": "cold", "status": {"value": "unloaded"}}, {"id": "m", "status": {"value": "loaded"}}]),
    ],
)
def test_the_model_is_the_named_or_the_only_one(asked: str | None, entries: list[dict[str, Any]]) -> None:
    """Adapters and unloaded models do not make a choice necessary."""
    assert "m" == choose(entries, asked, "vllm", "http://x")["id"]


def test_a_near_miss_is_suggested() -> None:
    """A misspelt name gets the nearest as the thing to do."""
    with pytest.raises(UnknownModel) as caught:
        choose([{"id": "phi-4"}, {"id": "qwen2.5-7b"}], "qwen2.5-7", "vllm", "http://x")

    assert "use --model qwen2.5-7b" == caught.value.do


def test_no_models_at_all() -> None:
    """An empty list is said, with and without a name."""
    for asked in (None, "m"):
        with pytest.raises(UnknownModel):
            choose([], asked, "vllm", "http://x")


def test_only_llamacpp_may_ignore_the_name() -> None:
    """The same answer from another engine is an unknown model."""
    assert "m" == choose([{"id": "m"}], "other", "llama.cpp", "http://x")["id"]

    with pytest.raises(UnknownModel):
        choose([{"id": "m"}], "other", "unknown", "http://x")


@pytest.mark.parametrize(
    ("root", "written"),
    [
        ("http://host:8000", "host:8000"),
        ("https://host", "HTTPS://host/v1/"),
        ("http://host/some/prefix", "http://host/some/prefix/v1"),
        ("http://[::1]:8000", "http://[::1]:8000/"),
    ],
)
def test_root_of_an_endpoint(root: str, written: str) -> None:
    """A prefix before /v1 is kept."""
    assert root == normalise(written)


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("localhost:8000/a?n=1", "http://localhost:8000/a?n=1"),
        ("HTTPS://h/a/{{city}}?n={{id}}", "https://h/a/{{city}}?n={{id}}"),
        ("http://h", "http://h/"),
        ("http://h/v1/", "http://h/v1/"),
        ("h/?back=http://other", "http://h/?back=http://other"),
    ],
)
def test_the_url_of_any_http_is_taken_as_it_stands(endpoint, url):
    """Its path and its query are the user's own."""
    assert url == whole_url(endpoint)


@pytest.mark.parametrize("endpoint", ["http://h/?api_key=abc", "http://h/?n=1&Token=abc", "http://me:abc@h/"])
def test_a_key_in_the_url_of_any_http_is_refused(endpoint):
    """It would be written into the run folder."""
    with pytest.raises(UsageError) as found:
        whole_url(endpoint)

    assert "abc" not in str(found.value.what) and "--api-key-env" in found.value.do


def test_nothing_is_asked_of_any_http():
    """A request may have effects there, and the server need not even be up to be named."""
    facts = discover(Target(endpoint="http://127.0.0.1:9/a?n=1", api="http"), None)

    assert ("http://127.0.0.1:9/a?n=1", "http", None) == (facts.url, facts.engine, facts.model)
