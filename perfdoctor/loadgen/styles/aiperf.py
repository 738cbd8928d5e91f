"""NVIDIA aiperf (0.13): metrics/types/*.py. Its end to end is the last response with content."""

from perfdoctor.loadgen.styles._style import Column, Style, gaps_ms, milliseconds, tokens

STYLE = Style(
    percentiles="linear",
    columns=(
        Column(
            "Time to First Token",
            "ms",
            "from the request started to the first response with content, reasoning or a tool call",
            lambda r: milliseconds(r.sent_s, r.first_token_s),
        ),
        Column(
            "Time to Second Token",
            "ms",
            "between the first and the second response with content",
            lambda r: gaps_ms(r)[:1],
        ),
        Column(
            "Time to First Output Token",
            "ms",
            "from the request started to the first response that is no reasoning",
            lambda r: milliseconds(r.sent_s, r.first_answer_s),
        ),
        Column(
            "Request Latency",
            "ms",
            "from the request started to the last response with content",
            lambda r: milliseconds(r.sent_s, r.last_token_s),
        ),
        Column(
            "Inter Token Latency",
            "ms",
            "(request latency - time to first token) / (output tokens - 1), one for each request",
            lambda r: milliseconds(r.first_token_s, r.last_token_s, tokens(r) - 1),
        ),
        Column("Inter Chunk Latency", "ms", "gaps between responses, of all requests together", gaps_ms),
        Column(
            "Output Token Throughput Per User",
            "tokens/s",
            "1 / inter token latency, of each request",
            lambda r: [1e3 / v for v in milliseconds(r.first_token_s, r.last_token_s, tokens(r) - 1) if v],
        ),
    ),
)
