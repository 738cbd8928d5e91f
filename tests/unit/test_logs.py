"""What a server's start says of itself, as vLLM, SGLang and ollama write it."""

from __future__ import annotations

import pytest

from perfdoctor import logs

VLLM = """
INFO 10-06 12:00:01 [core.py:76] Initializing a V1 LLM engine (v0.11.0) model='m', enforce_eager=False
INFO 10-06 12:00:09 [default_loader.py:267] Loading weights took 5.25 seconds
INFO [gpu_model_runner.py:2653] Model loading took 3.3466 GiB and 6.118327 seconds
INFO 10-06 12:00:31 [monitor.py:34] torch.compile takes 16.40 s in total
INFO 10-06 12:00:31 [kv_cache_utils.py:1087] GPU KV cache size: 49,152 tokens
INFO [kv_cache_utils.py:1091] Maximum concurrency for 4,096 tokens per request: 12.00x
INFO [gpu_model_runner.py:3480] Graph capturing finished in 8 secs, took 0.31 GiB
INFO [core.py:210] init engine (profile, create kv cache, warmup model) took 30.62 seconds
""".splitlines()
SGLANG = """
[2026-05-15 08:39:01 TP0] server_args=ServerArgs(model_path='m', disable_cuda_graph=False)
[2026-05-15 08:39:03 TP0] Load weight begin. avail mem=46.81 GB
[2026-05-15 08:39:11 TP0] Load weight end. elapsed=8.01 s, dtype=torch.bfloat16, avail mem=62.08 GB
[2026-05-15 08:39:12 TP0] KV Cache is allocated. #tokens: 549277, K size: 25.14 GB, V size: 25.14 GB
[2026-05-15 08:39:38 TP0] Capture cuda graph end. Time elapsed: 26.10 s. mem usage=1.93 GB. avail mem=8.16 GB.
[2026-05-15 08:39:38 TP1] Capture cuda graph end. Time elapsed: 26.12 s. mem usage=1.93 GB. avail mem=8.16 GB.
""".splitlines()
OLLAMA = [
    'time=2026-01-02T12:00:00Z level=INFO source=server.go:1332 msg="llama runner started in 2.35 seconds"'
]


def test_a_start_of_vllm():
    """Its phases in seconds, its cache in tokens, graphs on."""
    assert {
        "eager": 0.0,
        "weights_s": 5.25,
        "model_s": 6.118327,
        "weights_bytes": pytest.approx(3.3466 * 2**30),
        "compile_s": 16.4,
        "kv_tokens": 49152.0,
        "kv_concurrency": 12.0,
        "graph_s": 8.0,
        "engine_s": 30.62,
    } == logs.read_start(VLLM)


def test_older_wording_of_vllm():
    """`memory` between size and seconds, and compilation that `took`."""
    found = logs.read_start(
        ["Model loading took 55.22 GiB memory and 20.3 seconds", "torch.compile took 4.5 s"]
    )

    assert (20.3, 4.5) == (found["model_s"], found["compile_s"])


def test_of_several_ranks_the_slowest_counts():
    """All wait for it."""
    found = logs.read_start(SGLANG)

    assert (8.01, 26.12, 549277.0, 0.0) == tuple(
        found[name] for name in ("weights_s", "graph_s", "kv_tokens", "eager")
    )


def test_the_newer_wording_of_sglang():
    """The capture line was renamed after 0.5.10."""
    assert {"graph_s": 16.4} == logs.read_start(["Capture target decode CUDA graph end. elapsed=16.40 s"])


def test_a_start_of_ollama():
    """One number for all of it."""
    assert {"runner_s": 2.35} == logs.read_start(OLLAMA)


def test_of_two_starts_the_last_one_counts():
    """What a server of yesterday took is not mixed with today's."""
    later = [line.replace("5.25", "1.50") for line in VLLM if "Graph" not in line]

    found = logs.read_start([*VLLM, *later])

    assert (1.5, False) == (found["weights_s"], "graph_s" in found)


def test_layers_that_stay_on_the_host():
    """Two of 33 are kept off the GPU; what is left out of a count of none is not known."""
    assert 2 / 33 == pytest.approx(
        logs.read_start(["load_tensors: offloaded 31/33 layers to GPU"])["on_host_share"]
    )
    assert {} == logs.read_start(["load_tensors: offloaded 0/0 layers to GPU"])


def test_a_log_without_a_start_says_nothing():
    """Absent is not zero."""
    assert {} == logs.read_start(["INFO: 127.0.0.1 - POST /v1/completions HTTP/1.1 200 OK"])
