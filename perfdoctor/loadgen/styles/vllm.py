"""`vllm bench serve` (0.33): benchmarks/lib/endpoint_request_func.py and benchmarks/serve.py."""

from perfdoctor.loadgen.styles._style import (
    Column,
    Style,
    all_tokens,
    gaps_ms,
    milliseconds,
    output,
    requests,
    tokens,
)

STYLE = Style(
    percentiles="linear",
    totals=(
        requests("Request throughput", "req/s"),
        output("Output token throughput", "tok/s"),
        all_tokens("Total token throughput", "tok/s"),
    ),
    columns=(
        Column(
            "TTFT",
            "ms",
            "from before the post, connecting included, to the first chunk with content or `reasoning`; it "
            "does not know `reasoning_content`, where its TTFT is the TTFA above",
            lambda r: milliseconds(r.sent_s, r.first_token_s),
        ),
        Column(
            "TPOT",
            "ms",
            "(latency - TTFT) / (output tokens - 1), of answers with more than one token",
            lambda r: milliseconds(r.first_token_s, r.last_token_s, tokens(r) - 1),
        ),
        Column("ITL", "ms", "gaps between chunks with content, of all requests together", gaps_ms),
        Column(
            "E2EL",
            "ms",
            "from before the post to the last chunk with content",
            lambda r: milliseconds(r.sent_s, r.last_token_s),
        ),
    ),
)
