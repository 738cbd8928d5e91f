"""JSON Schemas of the published JSON, generated from the types and shipped under schemas/.

After a change of model.py run `python -m perfdoctor.reports._schemas`; a test compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from perfdoctor.model import Calibration, Comparison, Diagnosis, LoadSummary, Sweep, Trials, Verification

FOLDER = Path(__file__).parent / "schemas"
DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "diagnosis.schema.json": Diagnosis,
    "load-summary.schema.json": LoadSummary,
    "calibration.schema.json": Calibration,
    "sweep.schema.json": Sweep,
    "comparison.schema.json": Comparison,
    "verification.schema.json": Verification,
    "trials.schema.json": Trials,
}


def generate() -> dict[str, str]:
    """File name to content."""
    return {name: json.dumps(schema_of(kind), indent=1) + "\n" for name, kind in DOCUMENTS.items()}


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """A schema of what is written, not of what can be read: no key may be missing, none has a default."""
    schema = msgspec.json.schema(kind)
    for definition in schema.get("$defs", {}).values():
        if "properties" in definition:
            definition["required"] = list(definition["properties"])
            for field in definition["properties"].values():
                field.pop("default", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, content in generate().items():
        (FOLDER / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
