"""guidellm (0.8.1): schemas/base/request_stats.py. Its clock starts when the request's head is written."""

from perfdoctor.loadgen.styles._style import Column, Style, milliseconds, output, requests, tokens

STYLE = Style(
    percentiles="rank",
    totals=(
        requests("Requests Per Sec", "req/s"),
        output("Output Tokens Per Sec", "tok/s"),
    ),
    columns=(
        Column(
            "Request latency",
            "ms",
            "from the request written, connecting left out, to the stream's end",
            lambda r: milliseconds(r.written_s, r.end_s),
        ),
        Column(
            "TTFT",
            "ms",
            "from the request written to the first chunk with content, reasoning or a tool call",
            lambda r: milliseconds(r.written_s, r.first_token_s),
        ),
        Column(
            "TTFOT",
            "ms",
            "from the request written to the first chunk that is no reasoning",
            lambda r: milliseconds(r.written_s, r.first_answer_s),
        ),
        Column(
            "ITL",
            "ms",
            "(last - first token) / (output tokens - 1), one mean for each request",
            lambda r: milliseconds(r.first_token_s, r.last_token_s, tokens(r) - 1),
        ),
        Column(
            "TPOT",
            "ms",
            "(last token - start) / output tokens: the time to the first token is in it",
            lambda r: milliseconds(r.written_s, r.last_token_s, tokens(r)),
        ),
    ),
)
