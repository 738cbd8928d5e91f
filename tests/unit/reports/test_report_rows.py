"""Requests as rows: CSV for a spreadsheet, JSONL for a program."""

from __future__ import annotations

import csv
import io
import json

import msgspec
import pytest
import report_cases as cases

from perfdoctor import latency
from perfdoctor.model import RequestRecord
from perfdoctor.reports import csv as csv_report
from perfdoctor.reports import jsonl
from perfdoctor.reports._bundle import Bundle
from perfdoctor.reports._request_rows import COLUMNS

ANSWER = RequestRecord(
    id=7, phase="steady", due_s=0.5, sent_s=1.0, written_s=1.25, headers_s=1.5, first_event_s=1.5,
    first_token_s=2.0, first_answer_s=2.0, last_token_s=4.0, end_s=4.25, token_at_s=(2.0, 3.0, 4.0),
    output_tokens=3, token_source="usage", finish_reason="stop", status=200, reused=True,
)  # fmt: skip
UNSENT = RequestRecord(id=8, phase="steady", due_s=9.0, outcome="not_sent", censored=True)


def bundle(*records: RequestRecord) -> Bundle:
    return Bundle(None, cases.summary(), cases.FACTS, requests=records)


def table(*records: RequestRecord) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_report.render(bundle(*records)))))


def test_a_csv_row_holds_instants_and_durations():
    """In seconds; what did not happen is an empty cell, not 0."""
    row, unsent = table(ANSWER, UNSENT)

    assert ("7", "1.0", "1.0", "3.0", "1.0") == (
        row["id"], row["sent_s"], row["ttft_s"], row["e2e_s"], row["tpot_s"],
    )  # fmt: skip
    assert ("1.5", "0.25", "", "ok", "True") == (
        row["ttft_from_schedule_s"], row["stage_pool_wait_s"], row["stage_connect_s"],
        row["outcome"], row["reused"],
    )  # fmt: skip
    assert ("9.0", "", "", "not_sent") == (
        unsent["due_s"], unsent["sent_s"], unsent["ttft_s"], unsent["outcome"],
    )  # fmt: skip


def test_every_number_says_its_unit():
    """Seconds, bytes, tokens; a count, a status and a name need none."""
    plain = {
        "id",
        "body_bytes",
        "reads",
        "redialled",
        "reused",
        "turn",
        "worker",
        "status",
        "head_chunks",
        "censored",
    }
    words = {"phase", "token_source", "finish_reason", "outcome", "prompt_hash", "error"}

    assert all(name.endswith(("_s", "_tokens")) for name in set(COLUMNS) - plain - words)
    assert len(COLUMNS) == len(set(COLUMNS))


def test_a_run_without_requests_is_a_head_alone():
    """A spreadsheet opens it, a program reads no rows."""
    assert ",".join(COLUMNS) + "\n" == csv_report.render(bundle())
    assert "" == jsonl.render(bundle())


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1+1", "\r\n=cmd|'/c calc'!A0", " =1"])
def test_a_servers_text_is_no_formula(text):
    """A spreadsheet would compute it, or run it."""
    (row,) = table(msgspec.structs.replace(ANSWER, outcome="http_500", error=text))

    assert row["error"].startswith("'")


def test_a_servers_text_stays_in_its_cell():
    """Quotes, separators, line ends and escape sequences."""
    (row,) = table(msgspec.structs.replace(ANSWER, error='a,"b"\n\x1b[31mc'))

    assert 'a,"b" \\x1b[31mc' == row["error"]


def test_a_jsonl_line_gives_back_the_record():
    """All of it but the stamps of the single chunks, which the run folder holds."""
    left_out = {"token_at_s", "token_counts", "first_text", "kind", "server_prefill_s", "server_decode_s"}
    for record, line in zip((ANSWER, UNSENT), jsonl.render(bundle(ANSWER, UNSENT)).splitlines(), strict=True):
        row = json.loads(line)
        known = {name: getattr(record, name) for name in record.__struct_fields__ if name not in left_out}

        assert known == {name: row[name] for name in known}
        assert latency.e2e(record) == row["e2e_s"]


def test_the_prompts_tail_is_left_out_of_rows_too():
    """One number for one thing, whatever the report."""
    echoed = msgspec.structs.replace(ANSWER, first_text="\n", output_tokens=2, finish_reason="length")

    assert [2.0] * 3 == [
        json.loads(line)["ttft_s"] for line in jsonl.render(bundle(*[echoed] * 3)).splitlines()
    ]
