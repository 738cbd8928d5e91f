"""A start put together from its lines."""

from __future__ import annotations

import pytest

from perfdoctor.logs import Tally, read_start

VLLM = """\
(APIServer pid=1) INFO 11-05 22:40:40 [api_server.py:1090] vLLM API server version 0.11.0
(EngineCore_DP0 pid=9) INFO 11-05 22:41:00 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m', enforce_eager=False
(EngineCore_DP0 pid=9) INFO 11-05 22:41:23 [default_loader.py:267] Loading weights took 12.34 seconds
(EngineCore_DP0 pid=9) INFO 11-05 22:41:24 [gpu_model_runner.py:2653] Model loading took 3.1968 GiB and 13.793934 seconds
(EngineCore_DP0 pid=9) INFO 11-05 22:41:26 [monitor.py:34] torch.compile takes 1.40 s in total
(EngineCore_DP0 pid=9) INFO 11-05 22:41:26 [gpu_worker.py:298] Available KV cache memory: 20.72 GiB
(EngineCore_DP0 pid=9) INFO 11-05 22:41:27 [kv_cache_utils.py:1087] GPU KV cache size: 603,488 tokens
(EngineCore_DP0 pid=9) INFO 11-05 22:41:27 [kv_cache_utils.py:1091] Maximum concurrency for 1,024 tokens per request: 589.34x
(EngineCore_DP0 pid=9) INFO 11-05 22:41:36 [gpu_model_runner.py:4587] Graph capturing finished in 9 secs, took 0.66 GiB
(EngineCore_DP0 pid=9) INFO 11-05 22:41:36 [core.py:259] init engine (profile, create kv cache, warmup model) took 11.60 seconds
(APIServer pid=1) INFO:     Application startup complete.
"""


def start_of(text):
    """The last start of a text."""
    tally = Tally()
    tally.feed(text.splitlines())
    return tally.start()


def test_a_start_of_vllm():
    """Parts in order, what was settled, engine and version."""
    start = start_of(VLLM)

    assert ("vllm", "0.11.0", 1, True) == (start.engine, start.version, start.workers, start.ready)
    assert ["weights", "model", "compile", "graph", "engine"] == [step.name for step in start.steps]
    assert 9 == read_start(VLLM.splitlines())["graph_s"]
    assert (603488, 0) == (start.facts["kv_tokens"], start.facts["eager"])
    assert start.seconds is None  # the last line has no stamp


def test_its_length_is_from_banner_to_answering():
    """By stamps of one clock, here those of the container runtime."""
    lines = VLLM.splitlines()
    stamped = [f"2026-11-05T22:{40 + n // 60}:{n % 60:02}.5Z {line}" for n, line in enumerate(lines)]

    assert pytest.approx(len(lines) - 1) == start_of("\n".join(stamped)).seconds


def test_a_clock_that_was_set_back_says_nothing():
    """No negative length."""
    first = "2026-11-05T22:40:00Z vLLM API server version 0.11.0\nLoading weights took 1 s\n"

    assert start_of(first + "2026-11-05T22:39:59Z Application startup complete.").seconds is None


def test_only_the_last_start_counts():
    """A log that is appended to holds those before; the two banners of one start are one."""
    again = VLLM.replace("12.34", "43.21").replace("0.11.0", "0.12.0")

    start = start_of(VLLM + again)

    assert (43.21, "0.12.0") == (start.values()["weights_s"], start.version)


def test_side_by_side_the_slowest_counts_one_after_the_other_adds_up():
    """Eight workers load at once; a model and its draft do not."""
    side_by_side = "\n".join(
        f"[2026-08-10 09:47:14 TP{n}] Load weight end. elapsed={90 + n}.0 s, mem usage=47.06 GB."
        for n in range(8)
    )
    in_turn = "Load weight end. elapsed=90.0 s\nLoad weight end. elapsed=10.0 s"

    assert (97.0, 8) == (start_of(side_by_side).values()["model_s"], start_of(side_by_side).workers)
    assert (100.0, 1) == (start_of(in_turn).values()["model_s"], start_of(in_turn).workers)


def test_a_part_without_its_seconds_is_timed_by_its_two_lines():
    """llama.cpp writes when, not how long."""
    start = start_of(
        "0.00.001.007 I srv          init: initializing ...\n"
        "0.00.004.264 I srv          init: loading model\n"
        "0.07.035.438 I srv          init: model loaded\n"
        "0.07.135.007 I srv          init: listening on http://127.0.0.1:18104\n"
    )

    assert "llama.cpp" == start.engine
    assert pytest.approx(7.031174) == start.values()["model_s"]
    assert pytest.approx(7.134) == start.seconds


def test_no_start_in_a_log_of_requests():
    """None, not a start of zero seconds."""
    text = "INFO: 127.0.0.1 - GET /health 200 OK\n" * 3

    assert start_of(text) is None
    assert {} == read_start(text.splitlines())


def test_layers_that_stay_on_the_host():
    """Two of 33 are kept off the GPU; a share of no layers is not known."""
    assert (
        pytest.approx(2 / 33) == read_start(["load_tensors: offloaded 31/33 layers to GPU"])["on_host_share"]
    )
    assert {} == read_start(["load_tensors: offloaded 0/0 layers to GPU"])


def test_a_start_of_ollama():
    """Its runner's seconds hold all of it."""
    line = 'time=2026-01-02T12:00:00Z level=INFO source=server.go:1332 msg="llama runner started in 2.35 seconds"'

    assert {"runner_s": 2.35} == read_start([line])
