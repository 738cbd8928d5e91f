"""SGLang's `bench_serving` (0.5.23): benchmark/serving.py. It opens a new connection for each request."""

from perfdoctor.loadgen.styles._style import (
    Column,
    Style,
    Total,
    all_tokens,
    gaps_ms,
    inputs,
    milliseconds,
    output,
    requests,
    seconds,
    tokens,
)

STYLE = Style(
    percentiles="linear",
    totals=(
        requests("Request throughput", "req/s"),
        inputs("Input token throughput", "tok/s"),
        output("Output token throughput", "tok/s"),
        all_tokens("Total token throughput", "tok/s"),
        Total(
            "Concurrency",
            "requests",
            "their E2E latencies added up, by the same time: the users, less while they start and end",
            seconds,
        ),
    ),
    columns=(
        Column(
            "TTFT",
            "ms",
            "from before the post to the first chunk with content or reasoning",
            lambda r: milliseconds(r.sent_s, r.first_token_s),
        ),
        Column(
            "TPOT",
            "ms",
            "(E2E latency - TTFT) / (output tokens - 1): the usage chunk and [DONE] count as decoding",
            lambda r: milliseconds(r.first_token_s, r.end_s, tokens(r) - 1),
        ),
        Column("ITL", "ms", "gaps between chunks with content, of all requests together", gaps_ms),
        Column(
            "E2E latency",
            "ms",
            "from before the post to the last line of the stream; here to its end",
            lambda r: milliseconds(r.sent_s, r.end_s),
        ),
    ),
)
