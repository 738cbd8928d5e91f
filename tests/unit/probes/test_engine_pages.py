"""Pages of metrics as each engine writes them, cut to what is read: its version above each."""

from __future__ import annotations

import pytest

from perfdoctor.probes import _engine_table

TABLES = _engine_table.load_tables()
NAMES = _engine_table.sample_names(TABLES)

# 0.11, `--api-server-count 1`
VLLM_V1 = """\
vllm:num_requests_running{engine="0",model_name="m"} 8.0
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.75
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 4000.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 1000.0
vllm:num_preemptions_total{engine="0",model_name="m"} 2.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 4000.0
vllm:generation_tokens_total{engine="0",model_name="m"} 1200.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 9.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 1.0
vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="m"} 5.0
vllm:iteration_tokens_total_count{engine="0",model_name="m"} 300.0
vllm:iteration_tokens_total_sum{engine="0",model_name="m"} 5200.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 10.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 2.5
vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 1190.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} 23.8
vllm:e2e_request_latency_seconds_count{engine="0",model_name="m"} 10.0
vllm:e2e_request_latency_seconds_sum{engine="0",model_name="m"} 27.0
vllm:request_queue_time_seconds_count{engine="0",model_name="m"} 10.0
vllm:request_queue_time_seconds_sum{engine="0",model_name="m"} 1.5
vllm:request_prefill_time_seconds_count{engine="0",model_name="m"} 10.0
vllm:request_prefill_time_seconds_sum{engine="0",model_name="m"} 1.0
vllm:request_decode_time_seconds_count{engine="0",model_name="m"} 10.0
vllm:request_decode_time_seconds_sum{engine="0",model_name="m"} 24.0
"""
# 0.6.5
VLLM_V0 = """\
vllm:num_requests_running{model_name="m"} 8.0
vllm:num_requests_swapped{model_name="m"} 0.0
vllm:num_requests_waiting{model_name="m"} 3.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.75
vllm:cpu_cache_usage_perc{model_name="m"} 0.0
vllm:num_preemptions_total{model_name="m"} 2.0
vllm:prompt_tokens_total{model_name="m"} 4000.0
vllm:generation_tokens_total{model_name="m"} 1200.0
vllm:request_success_total{finished_reason="stop",model_name="m"} 10.0
vllm:iteration_tokens_total_count{model_name="m"} 300.0
vllm:time_to_first_token_seconds_count{model_name="m"} 10.0
vllm:time_to_first_token_seconds_sum{model_name="m"} 2.5
vllm:time_per_output_token_seconds_count{model_name="m"} 1190.0
vllm:time_per_output_token_seconds_sum{model_name="m"} 23.8
vllm:e2e_request_latency_seconds_count{model_name="m"} 10.0
vllm:e2e_request_latency_seconds_sum{model_name="m"} 27.0
vllm:time_in_queue_requests_count{model_name="m"} 10.0
vllm:time_in_queue_requests_sum{model_name="m"} 1.5
vllm:request_prefill_time_seconds_count{model_name="m"} 10.0
vllm:request_prefill_time_seconds_sum{model_name="m"} 1.0
vllm:request_decode_time_seconds_count{model_name="m"} 10.0
vllm:request_decode_time_seconds_sum{model_name="m"} 24.0
"""
# 0.5, with --enable-metrics and two tensor-parallel ranks
SGLANG = """\
sglang:num_running_reqs{model_name="m",tp_rank="0"} 8.0
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 3.0
sglang:token_usage{model_name="m",tp_rank="0"} 0.75
sglang:num_retracted_reqs{model_name="m",tp_rank="0"} 1.0
sglang:num_retracted_requests_total{model_name="m",tp_rank="0"} 2.0
sglang:prompt_tokens_total{model_name="m"} 4000.0
sglang:generation_tokens_total{model_name="m"} 1200.0
sglang:cached_tokens_total{model_name="m"} 1000.0
sglang:num_requests_total{model_name="m"} 10.0
sglang:time_to_first_token_seconds_count{model_name="m"} 10.0
sglang:time_to_first_token_seconds_sum{model_name="m"} 2.5
sglang:inter_token_latency_seconds_count{model_name="m"} 1190.0
sglang:inter_token_latency_seconds_sum{model_name="m"} 23.8
sglang:e2e_request_latency_seconds_count{model_name="m"} 10.0
sglang:e2e_request_latency_seconds_sum{model_name="m"} 27.0
sglang:queue_time_seconds_count{model_name="m",tp_rank="0"} 10.0
sglang:queue_time_seconds_sum{model_name="m",tp_rank="0"} 1.5
sglang:per_stage_req_latency_seconds_count{model_name="m",stage="prefill_forward",tp_rank="0"} 10.0
sglang:per_stage_req_latency_seconds_count{model_name="m",stage="prefill_forward",tp_rank="1"} 10.0
sglang:per_stage_req_latency_seconds_sum{model_name="m",stage="prefill_forward",tp_rank="0"} 1.0
sglang:per_stage_req_latency_seconds_sum{model_name="m",stage="prefill_forward",tp_rank="1"} 1.0
sglang:per_stage_req_latency_seconds_sum{model_name="m",stage="prefill_waiting",tp_rank="0"} 77.0
"""
# 3.3
TGI = """\
tgi_batch_current_size 8
tgi_queue_size 3
tgi_request_count 10
tgi_request_duration_count 10
tgi_request_duration_sum 27
tgi_request_queue_duration_count 10
tgi_request_queue_duration_sum 1.5
tgi_request_input_length_count 10
tgi_request_input_length_sum 4000
tgi_request_generated_tokens_count 10
tgi_request_generated_tokens_sum 1200
tgi_request_mean_time_per_token_duration_count 10
tgi_request_mean_time_per_token_duration_sum 0.21
tgi_batch_inference_count{method="prefill"} 10
tgi_batch_inference_count{method="decode"} 290
tgi_batch_inference_duration_count{method="decode"} 290
tgi_batch_inference_duration_sum{method="decode"} 24
"""
# build of 2026-10, with --metrics
LLAMA = """\
llamacpp:prompt_tokens_total 4000
llamacpp:prompt_tokens_cached_total 1000
llamacpp:prompt_seconds_total 1
llamacpp:tokens_predicted_total 1200
llamacpp:tokens_predicted_seconds_total 24
llamacpp:n_decode_total 300
llamacpp:n_tokens_max 252
llamacpp:prompt_tokens_seconds 0
llamacpp:requests_processing 8
llamacpp:requests_deferred 3
llamacpp:n_busy_slots_per_decode 2.94322
"""
# 25.03, one model of the TensorRT-LLM backend
TRITON = """\
nv_inference_request_success{model="tensorrt_llm",version="1"} 10
nv_inference_request_failure{model="tensorrt_llm",reason="OTHER",version="1"} 0
nv_inference_exec_count{model="tensorrt_llm",version="1"} 300
nv_inference_request_duration_us{model="tensorrt_llm",version="1"} 27000000
nv_inference_queue_duration_us{model="tensorrt_llm",version="1"} 1500000
nv_inference_compute_infer_duration_us{model="tensorrt_llm",version="1"} 25000000
nv_inference_pending_request_count{model="tensorrt_llm",version="1"} 1
nv_inference_first_response_histogram_ms_count{model="tensorrt_llm",version="1"} 10
nv_inference_first_response_histogram_ms_sum{model="tensorrt_llm",version="1"} 2500
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="active",version="1"} 11
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 8
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 3
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"} 0.75
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"} 6239
"""
# trtllm-serve 1.3, return_perf_metrics and enable_iter_perf_stats
TRTLLM = """\
trtllm_num_requests_running{engine_type="trtllm",model_name="m"} 8.0
trtllm_num_requests_waiting{engine_type="trtllm",model_name="m"} 3.0
trtllm_kv_cache_utilization{engine_type="trtllm",model_name="m"} 0.75
trtllm_kv_cache_hit_rate{engine_type="trtllm",model_name="m"} 0.25
trtllm_request_success_total{engine_type="trtllm",finished_reason="stop",model_name="m"} 10.0
trtllm_prompt_tokens_total{engine_type="trtllm",model_name="m"} 4000.0
trtllm_generation_tokens_total{engine_type="trtllm",model_name="m"} 1200.0
trtllm_prompt_cached_tokens_total{engine_type="trtllm",model_name="m"} 1000.0
trtllm_time_to_first_token_seconds_count{engine_type="trtllm",model_name="m"} 10.0
trtllm_time_to_first_token_seconds_sum{engine_type="trtllm",model_name="m"} 2.5
trtllm_time_per_output_token_seconds_count{engine_type="trtllm",model_name="m"} 10.0
trtllm_time_per_output_token_seconds_sum{engine_type="trtllm",model_name="m"} 0.2
trtllm_e2e_request_latency_seconds_count{engine_type="trtllm",model_name="m"} 10.0
trtllm_e2e_request_latency_seconds_sum{engine_type="trtllm",model_name="m"} 27.0
trtllm_request_queue_time_seconds_count{engine_type="trtllm",model_name="m"} 10.0
trtllm_request_queue_time_seconds_sum{engine_type="trtllm",model_name="m"} 1.5
trtllm_request_prefill_time_seconds_count{engine_type="trtllm",model_name="m"} 10.0
trtllm_request_prefill_time_seconds_sum{engine_type="trtllm",model_name="m"} 1.0
trtllm_request_decode_time_seconds_count{engine_type="trtllm",model_name="m"} 10.0
trtllm_request_decode_time_seconds_sum{engine_type="trtllm",model_name="m"} 24.0
"""

# the same state of each: eight running, three waiting, ten requests of 2.7 s, 1.5 s of queue in all
FULL = {
    "running": 8, "waiting": 3, "kv_usage": 0.75, "preemptions": 2, "prompt_tokens": 4000,
    "output_tokens": 1200, "requests": 10, "queue_sum_s": 1.5, "queue_count": 10, "prefill_sum_s": 1.0,
    "prefill_count": 10,
    "decode_sum_s": 24.0, "decode_count": 10, "ttft_sum_s": 2.5, "ttft_count": 10, "e2e_sum_s": 27.0,
    "e2e_count": 10, "itl_sum_s": 23.8, "itl_count": 1190, "prefix_hits": 1000, "prefix_queries": 4000,
    "steps": 300,
}  # fmt: skip
LACKING = {
    "vllm": "",
    "vllm v0": "prefix_hits prefix_queries",
    "sglang": "decode_sum_s decode_count steps",
    "tgi": "kv_usage preemptions prefill_sum_s prefill_count decode_sum_s decode_count ttft_sum_s ttft_count "
    "itl_sum_s itl_count prefix_hits prefix_queries",
    "llama.cpp": "kv_usage preemptions requests queue_sum_s queue_count prefill_count decode_count "
    "ttft_sum_s ttft_count e2e_sum_s e2e_count itl_sum_s itl_count prefix_queries",
    "triton": "preemptions prompt_tokens output_tokens prefill_sum_s prefill_count decode_sum_s decode_count "
    "itl_sum_s itl_count prefix_hits prefix_queries",
    "tensorrt-llm": "preemptions steps",
}
ELSE = {
    "sglang": {"prefill_sum_s": 2.0, "prefill_count": 20},  # once a rank: the mean is right
    "tensorrt-llm": {"itl_sum_s": 0.2, "itl_count": 10},
}
PAGES = {
    "vllm": VLLM_V1, "vllm v0": VLLM_V0, "sglang": SGLANG, "tgi": TGI, "llama.cpp": LLAMA, "triton": TRITON,
    "tensorrt-llm": TRTLLM,
}  # fmt: skip


@pytest.mark.parametrize("case", PAGES)
def test_each_engine_under_our_names(case):
    """What it exports has its value, in our unit; what it does not is missing."""
    engine = case.split()[0]
    page = _engine_table.parse_page(_engine_table.wanted_lines(PAGES[case].encode(), NAMES))
    lacking = set(LACKING[case].split())

    found = _engine_table.normalise(page, TABLES[engine].aliases)
    given = {name: value for name, value in found.items() if value is not None}

    assert engine == _engine_table.best_engine(page, TABLES)
    assert {n: v for n, v in (FULL | ELSE.get(case, {})).items() if n not in lacking} == pytest.approx(given)


@pytest.mark.parametrize("engine", [name for name, table in TABLES.items() if not table.none])
def test_every_number_is_exported_or_says_why_not(engine):
    """No engine's table leaves a number out in silence, and none claims both."""
    table = TABLES[engine]
    absent = {name for names in table.absent.values() for name in names}

    assert set(FULL) == absent | table.aliases.keys()
    assert set() == absent & table.aliases.keys()
