"""Lines as the servers write them, one engine and version after another."""

from __future__ import annotations

import pytest

from perfdoctor.logs import read_line, read_statistics

GIB = 2**30
# vLLM 0.10, 0.6, and 0.18 with all its clauses; SGLang 0.5 decode and prefill; a model with a sliding window
VLLM_V1 = (
    "(APIServer pid=1) INFO 09-10 12:00:00 [loggers.py:123] Engine 000: Avg prompt throughput: 35.2 tokens/s, Avg "
    "generation throughput: 150.1 tokens/s, Running: 4 reqs, Waiting: 12 reqs, GPU KV cache usage: 85.5%, "
    "Prefix cache hit rate: 12.0%"
)
VLLM_V0 = (
    "INFO 01-02 12:00:00 metrics.py:455] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 8.2 "
    "tokens/s, Running: 1 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV cache usage: 0.3%, "
    "CPU KV cache usage: 40.0%."
)
SGLANG = (
    "[2026-01-02 12:00:00 TP0] Decode batch, #running-req: 5, #token: 1234, token usage: 0.12, cuda graph: True, "
    "gen throughput (token/s): 250.10, #queue-req: 2"
)
SGLANG_PREFILL = (
    "[2026-08-07 17:36:20 TP0] Prefill batch, #new-seq: 1, #new-token: 128, #cached-token: 0, full token usage: "
    "0.31, swa token usage: 0.90, #running-req: 3, #queue-req: 4, #pending-token: 0, input throughput (token/s): 38.23"
)


@pytest.mark.parametrize(
    ("line", "engine", "expected"),
    [
        (
            VLLM_V1,
            "vllm",
            {
                "running": 4,
                "waiting": 12,
                "kv_usage": 0.855,
                "generation_tokens_per_s": 150.1,
                "prompt_tokens_per_s": 35.2,
                "prefix_hit_share": 0.12,
            },
        ),
        (
            VLLM_V0,
            "vllm",
            {
                "running": 1,
                "waiting": 3,
                "kv_usage": 0.003,
                "generation_tokens_per_s": 8.2,
                "prompt_tokens_per_s": 0.0,
            },
        ),
        (
            SGLANG,
            "sglang",
            {"running": 5, "waiting": 2, "kv_usage": 0.12, "generation_tokens_per_s": 250.1, "cuda_graph": 1},
        ),
        (
            SGLANG_PREFILL,
            "sglang",
            {"running": 3, "waiting": 4, "kv_usage": 0.31, "prompt_tokens_per_s": 38.23},
        ),
    ],
)
def test_statistics_under_our_names(line, engine, expected):
    """Running, waiting, cache and pace, whoever wrote them; what a line leaves out is absent."""
    said = next(s for s in read_line(line) if s.kind == "statistics")

    assert engine == said.engine
    assert pytest.approx(expected) == said.values
    assert pytest.approx(expected) == read_statistics(line)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (
            "WARNING 05-09 00:49:33 scheduler.py:1057 Sequence group 0 is preempted by PreemptionMode.RECOMPUTE mode "
            "because there is not enough KV cache space. total_cumulative_preemption_cnt=51",
            {"preemptions_total": 51},
        ),
        (
            "WARNING scheduler.py:1754] Sequence group c is preempted by PreemptionMode.SWAP mode because there is "
            "not enough KV cache space. total_num_cumulative_preemption=1",
            {"preemptions_total": 1},
        ),
        (
            "[2026-09-13 16:06:07] KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_tokens_gained: "
            "646, #new_token_ratio: 0.0980 -> 0.3487",
            {"preemptions": 3},
        ),
    ],
)
def test_preemptions(line, values):
    """Of vLLM the running count since its start, of SGLang those of one line."""
    (said,) = read_line(line)

    assert ("preemption", values) == (said.kind, said.values)


def test_preemptions_in_a_statistics_line():
    """Two statements in one line of a vLLM that has the clause."""
    line = VLLM_V1.replace("GPU KV", "Preemptions: 2, GPU KV")

    assert {"statistics", "preemption"} == {said.kind for said in read_line(line)}


@pytest.mark.parametrize(
    ("line", "step", "values"),
    [
        ("INFO [default_loader.py:272] Loading weights took 3.22 seconds", "weights", {"seconds": 3.22}),
        (
            "INFO [gpu_model_runner.py:1801] Model loading took 14.2488 GiB and 5.173644 seconds",
            "model",
            {"seconds": 5.173644, "weights_bytes": 14.2488 * GIB},
        ),
        (
            "INFO [gpu_model_runner.py:4820] Model loading took 18.03 GiB memory and 37.516121 seconds",
            "model",
            {"seconds": 37.516121, "weights_bytes": 18.03 * GIB},
        ),
        ("Loading model weights took 14.2978 GB", "model", {"weights_bytes": 14.2978 * GIB}),
        ("INFO [monitor.py:34] torch.compile takes 13.29 s in total", "compile", {"seconds": 13.29}),
        ("INFO [monitor.py:48] torch.compile took 4.23 s in total", "compile", {"seconds": 4.23}),
        ("INFO worker.py:267] Memory profiling takes 0.85 seconds", "profile", {"seconds": 0.85}),
        ("[monitor.py:76] Initial profiling/warmup run took 2.32 s", "warmup", {"seconds": 2.32}),
        (
            "Graph capturing finished in 23 secs, took 2.24 GiB",
            "graph",
            {"seconds": 23, "graph_bytes": 2.24 * GIB},
        ),
        (
            "Graph capturing finished in 4 secs, took -0.12 GiB",
            "graph",
            {"seconds": 4, "graph_bytes": -0.12 * GIB},
        ),
        (
            "init engine (profile, create kv cache, warmup model) took 212.68 s (compilation: 13.01 s)",
            "engine",
            {"seconds": 212.68},
        ),
        (
            "[2026-08-10 09:47:14 DP0 TP0 EP0] Load weight end. elapsed=93.30 s, type=DeepseekV4ForCausalLM, "
            "avail mem=13.43 GB, mem usage=47.06 GB.",
            "model",
            {"seconds": 93.3, "weights_bytes": 47.06 * GIB},
        ),
        (
            "Load weight end. elapsed=94.49 s, type=MTP, avail mem=30.67 GB, mem usage=-1.86 GB.",
            "model",
            {"seconds": 94.49},
        ),
        (
            "[2026-02-04 11:30:30] Capture cuda graph end. Time elapsed: 1.01 s. mem usage=0.07 GB. avail mem=76 GB.",
            "graph",
            {"seconds": 1.01, "graph_bytes": 0.07 * GIB},
        ),
        (
            "Capture target verify CUDA graph end. elapsed=1.61 s, mem usage=0.11 GB, avail mem=26.15 GB.",
            "graph",
            {"seconds": 1.61, "graph_bytes": 0.11 * GIB},
        ),
        (
            'level=INFO source=server.go:1390 msg="llama runner started in 5.65 seconds"',
            "runner",
            {"seconds": 5.65},
        ),
    ],
)
def test_parts_of_a_start(line, step, values):
    """Seconds and bytes of each part, as the versions have worded it."""
    said = next(s for s in read_line(line) if s.kind == "step")

    assert step == said.step
    assert pytest.approx(values) == said.values


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("INFO [gpu_worker.py:298] Available KV cache memory: 20.72 GiB", {"kv_bytes": 20.72 * GIB}),
        ("the rest of the memory reserved for KV Cache is 54.62GiB.", {"kv_bytes": 54.62 * GIB}),
        (
            "GPU KV cache size: 34,952 tokens, Maximum concurrency for 8,192 tokens per request: 4.27x",
            {"kv_tokens": 34952, "request_tokens": 8192, "kv_concurrency": 4.27},
        ),
        (
            "Maximum concurrency for 32768 tokens per request: 136.97x",
            {"request_tokens": 32768, "kv_concurrency": 136.97},
        ),
        (
            "[2026-02-04 11:30:29] KV Cache is allocated. #tokens: 20480, K size: 0.12 GB, V size: 0.13 GB",
            {"kv_tokens": 20480, "kv_bytes": 0.25 * GIB},
        ),
        (
            "max_total_num_tokens=371661, chunked_prefill_size=8192, max_running_requests=2049, context_len=131072",
            {"kv_tokens": 371661, "most_running": 2049},
        ),
        ("[2026-05-15 08:39:01] x disable_cuda_graph=True, y", {"eager": 1}),
        ("load_tensors: offloaded 23/33 layers to GPU", {"gpu_layers": 23, "layers": 33}),
        (
            'msg=offload library=rocm layers.requested=-1 layers.model=63 layers.offload=60 layers.split=""',
            {"gpu_layers": 60, "layers": 63},
        ),
        (
            "0.00.031.915 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 4096, kv_unified = 'false'",
            {"most_running": 4, "request_tokens": 4096},
        ),
    ],
)
def test_what_a_start_settled(line, values):
    """Room for the cache, places, layers on the GPU."""
    (said,) = read_line(line)

    assert "fact" == said.kind
    assert pytest.approx(values) == said.values


@pytest.mark.parametrize(("word", "eager"), [("True", 1), ("False", 0)])
def test_the_banner_tells_version_and_eager_mode(word, eager):
    """Whether CUDA graphs were switched off stands in the configuration that vLLM prints."""
    line = f"(EngineCore pid=9) INFO 04-27 [core.py:105] Initializing a V1 LLM engine (v0.19.1) with config: enforce_eager={word}"
    begin, fact = sorted(read_line(line), key=lambda said: said.kind)

    assert ("begin", "0.19.1", "EngineCore") == (begin.kind, begin.version, begin.worker)
    assert {"eager": eager} == fact.values


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (
            "slot print_timing: id  3 | task 0 | prompt eval time =     50.50 ms /    17 tokens (    0.11 ms per token",
            {"prefill_s": 0.0505, "prompt_tokens": 17},
        ),
        (
            "slot print_timing: id  3 | task 0 |        eval time =       5.40 ms /    16 tokens (    0.36 ms per",
            {"decode_s": 0.0054, "output_tokens": 16},
        ),
        (
            "llama_print_timings:        eval time =    20.00 ms /     4 runs",
            {"decode_s": 0.02, "output_tokens": 4},
        ),
        (
            "slot print_timing: id  3 | task 0 |       total time =       7.33 ms /    33 tokens",
            {"total_s": 0.00733},
        ),
    ],
)
def test_times_of_one_request(line, values):
    """Prefill, decode and the whole of it, as llama.cpp ends a request."""
    (said,) = read_line(line)

    assert ("request", "llama.cpp") == (said.kind, said.engine)
    assert pytest.approx(values) == said.values


@pytest.mark.parametrize(
    ("took", "path", "total_s"),
    [
        ("20.862331914s", "/api/generate", 20.862331914),
        ("1m2.5s", "/v1/chat/completions", 62.5),
        ("829.3ms", "/api/chat", 0.8293),
        ("506.8µs", "/api/chat", None),
        ("20.8s", "/api/embed", None),
    ],
)
def test_requests_of_ollama(took, path, total_s):
    """Those that generate, in the units of Go; nothing that was answered before it was read."""
    line = f'[GIN] 2026/04/10 - 21:14:11 | 200 |   {took} |       127.0.0.1 | POST     "{path}"'

    found = [said.values["total_s"] for said in read_line(line)]

    assert ([pytest.approx(total_s)] if total_s else []) == found


def test_a_load_that_goes_on():
    """How far it is; when, its stamp tells."""
    (said,) = read_line('time=2024-07-21T09:37:23.095 level=DEBUG msg="model load progress 0.03"')

    assert ("progress", {"loaded_share": 0.03}) == (said.kind, said.values)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "INFO: 127.0.0.1 - POST /v1/chat/completions HTTP/1.1 200 OK",
        "I would say: Running: many reqs, KV cache usage: unknown",
        "Loading weights took ages",
        "\x00\xff Graph capturing finished in no secs",
    ],
)
def test_any_other_line_says_nothing(line):
    """Also one that only looks like it: no number is no statement."""
    assert () == read_line(line)
    assert {} == read_statistics(line)
