"""NVIDIA aiperf (0.13): metrics/types/*.py. Its end to end is the last response with content."""

from perfdoctor.loadgen.styles._style import Column, Style, gaps_ms, milliseconds, output, requests, tokens
from perfdoctor.model import RequestRecord


def _inter_token_ms(record: RequestRecord) -> list[float | None]:
    """With its option for usage in each chunk; a first count of zero, or of all, is not believed."""
    first = record.token_counts[0] if record.token_counts else 1
    later = tokens(record) - first
    return milliseconds(
        record.first_token_s, record.last_token_s, later if first > 0 and later > 0 else tokens(record) - 1
    )


STYLE = Style(
    percentiles="linear",
    totals=(
        output("Output Token Throughput", "tokens/sec"),
        requests("Request Throughput", "requests/sec"),
    ),
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
            "(request latency - time to first token) / (output tokens - those of the first response, 1 where "
            "the server does not tell them), one for each request",
            _inter_token_ms,
        ),
        Column("Inter Chunk Latency", "ms", "gaps between responses, of all requests together", gaps_ms),
        Column(
            "Output Token Throughput Per User",
            "tokens/s",
            "1 / inter token latency, of each request",
            lambda r: [1e3 / v for v in _inter_token_ms(r) if v],
        ),
    ),
)
