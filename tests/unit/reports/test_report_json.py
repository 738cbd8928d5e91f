"""The published JSON and its schemas."""

from __future__ import annotations

import json
import math

import jsonschema
import msgspec
import pytest
import report_cases as cases

from perfdoctor.errors import CannotJudge
from perfdoctor.model import Diagnosis, Evidence, LoadSummary, Signal
from perfdoctor.reports import _schemas
from perfdoctor.reports import json as report
from perfdoctor.reports._bundle import Bundle

DIAGNOSIS_KEYS = {
    "": {"schema", "run", "trust", "verdict", "findings", "rules", "ledger", "roof", "violated_laws", "next"},
    "trust": {"status", "error_s", "reasons"},
    "verdict": {"status", "class", "summary"},
    "findings.0": {
        "rule", "class", "status", "confidence", "share", "seconds", "evidence", "excluded", "explained_by",
        "fixes",
    },
    "findings.0.evidence.0": {"signal", "value", "unit", "comparison", "limit", "source"},
    "findings.0.fixes.0": {"id", "verdict", "bound", "source"},
    "rules.0": {"rule", "status", "reason"},
    "ledger": {"mean", "p95", "unexplained_share"},
    "ledger.mean.0": {"row", "seconds", "share", "source"},
    "roof": {"physical_share", "achievable_share", "binding", "assumptions"},
}  # fmt: skip
LOAD_KEYS = {
    "": {
        "schema", "run", "requests", "trust", "rates", "ttft", "ttfa", "tpot", "itl", "gap", "e2e",
        "e2e_from_schedule", "error_latency", "tokens", "slo",
    },
    "requests": {"total", "ok", "failed", "censored", "empty_answers"},
    "rates": {"requests_per_s", "output_tokens_per_s", "asked_per_s", "peak_output_tokens_per_s"},
    "ttft": {"n", "p50", "p90", "p95", "p99", "mean"},
    "tokens": {"output", "in_window", "source"},
}  # fmt: skip


def at(document, path):
    for key in filter(None, path.split(".")):
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def schema(name):
    return json.loads((_schemas.FOLDER / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("path", "keys"), DIAGNOSIS_KEYS.items())
def test_a_diagnosis_has_every_key_of_the_contract(path, keys):
    """Section 6 of the design, literally."""
    document = json.loads(report.render(cases.found()))

    assert keys <= at(document, path).keys()


@pytest.mark.parametrize(("path", "keys"), LOAD_KEYS.items())
def test_a_load_summary_has_every_key_of_the_contract(path, keys):
    """Section 6 of the design, literally."""
    document = json.loads(report.encode(cases.summary()))

    assert keys <= at(document, path).keys()


@pytest.mark.parametrize("case", cases.ALL.values(), ids=cases.ALL)
def test_output_validates_against_the_shipped_schemas(case):
    """Every kind of outcome, also the empty one."""
    bundle = case()

    jsonschema.validate(json.loads(report.render(bundle)), schema("diagnosis.schema.json"))
    if bundle.summary is not None:
        document = json.loads(report.encode(bundle.summary))
        jsonschema.validate(document, schema("load-summary.schema.json"))


def test_shipped_schemas_are_up_to_date():
    """After a change of model.py: python -m perfdoctor.reports._schemas."""
    shipped = {path.name: path.read_text(encoding="utf-8") for path in _schemas.FOLDER.iterdir()}

    assert _schemas.generate() == shipped


def test_the_schema_misses_a_missing_key():
    """Every key is promised; a document without one is none of ours."""
    document = json.loads(report.render(cases.found()))
    del document["verdict"]["summary"]

    with pytest.raises(jsonschema.ValidationError, match="summary"):
        jsonschema.validate(document, schema("diagnosis.schema.json"))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_null(bad):
    """NaN is no JSON: strict readers would refuse the whole document."""
    signal = Signal(name="x", value=bad, unit="s", missing="divided by zero")
    item = Evidence(signal="x", value=bad, unit="s", comparison="below", limit=1.0, source="test")
    finding = msgspec.structs.replace(cases.LAUNCH, evidence=(item,))
    broken = msgspec.structs.replace(cases.FOUND, signals=(signal,), findings=(finding,))

    text = report.encode(broken)

    document = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in the output"))
    assert document["signals"][0]["value"] is None
    jsonschema.validate(document, schema("diagnosis.schema.json"))


def test_a_document_reads_back_as_the_same_record():
    """The JSON is complete: nothing is lost on the way."""
    assert cases.FOUND == msgspec.json.decode(report.encode(cases.FOUND), type=Diagnosis)
    assert cases.summary() == msgspec.json.decode(report.encode(cases.summary()), type=LoadSummary)


def test_key_order_is_fixed():
    """Two runs can be compared by diff, whatever order a dict was filled in."""
    one = msgspec.structs.replace(cases.FACTS, calibration={"b": 1.0, "a": 2.0})
    two = msgspec.structs.replace(cases.FACTS, calibration={"a": 2.0, "b": 1.0})

    first, second = (report.encode(msgspec.structs.replace(cases.FOUND, facts=f)) for f in (one, two))

    assert first == second
    assert ["schema", "run", "state", "trust", "verdict"] == list(json.loads(first))[:5]


def test_a_load_test_without_a_diagnosis_is_its_summary():
    """One document either way."""
    document = json.loads(report.render(Bundle(None, cases.summary(), cases.FACTS)))

    assert 40 == document["requests"]["ok"]


def test_a_run_with_neither_is_an_error_with_its_reason():
    """Nothing is printed that a script could take for a result."""
    with pytest.raises(CannotJudge, match="neither"):
        report.render(Bundle(None, None, cases.FACTS))
