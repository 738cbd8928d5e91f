"""Puts the results of `perfdoctor verify --all` into the fixes' front matter.

    perfdoctor verify --all --model shape:deepseek-r1-distill-qwen-1.5b --pairs 5 --duration 1s \\
        --output-tokens 16 -o OUT          goes on where it ended when it is typed again
    python benchmarks/_measured.py OUT     prints an entry of `measured` for each fix that was judged
    python benchmarks/_measured.py OUT --write    and adds it to perfdoctor/diagnosis/fixes/*.md
    python benchmarks/_measured.py OUT --table    prints the claims beside the results, as Markdown

Left out of `make bench`: on one GPU it takes about a minute a fix.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from perfdoctor.diagnosis.catalogue import parse_fix
from perfdoctor.model import Trial, Verification
from perfdoctor.verify import read_trials

FIXES = Path(__file__).parents[1] / "perfdoctor" / "diagnosis" / "fixes"


def entry(found: Verification) -> str:
    """One line of TOML; a JSON string is one of TOML too."""
    assert found.ratio is not None and found.interval is not None
    low, high = found.interval
    text = {name: json.dumps(value) for name, value in texts(found).items()}
    how = text.pop("how")
    numbers = {"ratio": f"{found.ratio:.3g}", "interval": f"[{low:.3g}, {high:.3g}]"}
    fields = {**text, **numbers, "how": how}
    return "  { " + ", ".join(f"{name} = {value}" for name, value in fields.items()) + " },"


def texts(found: Verification) -> dict[str, str]:
    random = ", random weights" if found.model.startswith(("shape:", "tiny")) else ""
    answers = "the same answers"
    if found.outputs.differ or found.outputs.differ_together:
        differ = found.outputs.differ + found.outputs.differ_together
        answers = f"{differ} of {found.outputs.prompts} answers differ"
    what = "time of loading" if found.metric == "load_s" else "mean time of an answer"
    what += f" by verify, {found.load}"
    effect = (found.effect or "").replace("_", " ")
    return {
        "hardware": found.hardware,
        "model": found.model + random,
        "versions": found.versions,
        "how": f"{what}: {effect}, {answers}",
    }


def with_entry(text: str, line: str) -> str:
    """A fix's file with one measurement more."""
    if "\nmeasured = [\n" in text:
        head, _, rest = text.partition("\nmeasured = [\n")
        inside, _, after = rest.partition("\n]\n")
        return f"{head}\nmeasured = [\n{inside}\n{line}\n]\n{after}"
    head, _, after = text.partition("\nswitch = ")
    switch, _, rest = after.partition("\n")
    return f"{head}\nswitch = {switch}\nmeasured = [\n{line}\n]\n{rest}"


def row(trial: Trial) -> str:
    """`| fix | claimed | verdict there | measured here | verdict here |`"""
    found = trial.result
    assert found is not None and found.interval is not None
    claimed = (
        ", ".join(f"{name} {factor:g}x" for name, factor in sorted(trial.promised.items())) or "no number"
    )
    low, high = found.interval
    seen = f"{found.ratio:.2f}x ({low:.2f} to {high:.2f})"
    return f"| `{trial.fix}` | {claimed} | {trial.catalogue} | {seen} | {found.verdict.replace('_', ' ')} |"


def main() -> None:
    folder, write, table = Path(sys.argv[1]), "--write" in sys.argv[2:], "--table" in sys.argv[2:]
    for trial in read_trials(folder).trials:
        if trial.result is None or trial.result.interval is None:
            continue
        if table:
            print(row(trial))
            continue
        line = entry(trial.result)
        print(f"{trial.fix}\n{line}")
        if write:
            path = FIXES / f"{trial.fix}.md"
            text = with_entry(path.read_text(encoding="utf-8"), line)
            parse_fix(trial.fix, text)  # what cannot be read is not written
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
