"""Every file of the fix catalogue keeps the promises of its format.

That its perfdoctor commands parse is held by tests/contract/test_readme.py.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from perfdoctor import registry
from perfdoctor.diagnosis.catalogue import FOLDER, Fix, Variant, load_fixes, parse_fix
from perfdoctor.diagnosis.prescribe import CLASS_ROWS, placeholder_values
from perfdoctor.local.patient import LAUNCH
from perfdoctor.local.switches import _choose
from perfdoctor.model import Measured, RunFacts

ENGINES = {
    "perfdoctor-local", "transformers-serve", "vllm", "sglang", "tgi", "llama.cpp", "ollama", "unknown",
}  # fmt: skip
CLASSES = {
    "disk-io", "page-cache", "memory-bandwidth", "small-kernels", "scheduling", "overload", "launch-overhead",
    "gil", "cpu-contention", "event-loop", "tokenizer", "compute-prefill", "kv-cache", "fragmentation",
    "pcie-offload", "gpu-contention", "throttling", "numa", "network", "client-limited", "insufficient-load",
}  # fmt: skip
ROWS = {
    "client_wait", "connect", "network", "server_queue", "tokenise", "prefill.compute", "prefill.memory",
    "prefill.launch_gap", "prefill", "decode.memory", "decode.compute", "decode.launch_gap", "decode.sync",
    "decode.transfer", "decode", "allocator", "io_stall", "runq_delay", "gil_wait", "loop_stall",
    "storage_wait", "deserialise", "host_to_device", "import", "first_forward",
}  # fmt: skip
# Claims of the documents about these classes that are wrong or unsafe: each needs a page that says so.
REFUTED_ROWS = (
    "D0-03", "D0-04", "D0-05", "D0-08", "D0-09", "D0-14", "D0-15", "D0-16",
    "D1-05", "D1-07", "D1-08", "D1-10",
    "D2-06", "D2-07", "D2-09", "D2-11", "D2-14", "D2-15",
    "D3-02", "D3-06", "D3-07", "D3-08", "D3-12", "D3-13",
    "D4-07", "D4-08", "D4-10", "D4-11",
)  # fmt: skip

# Settings of the local server that fixes name and that it does not have yet.
PENDING_SWITCHES = {
    "batching", "max_batch", "window", "quant", "tokenizer", "load", "alloc", "numa",
}  # fmt: skip

ENGINE_FLAGS = msgspec.toml.decode(Path(__file__).with_name("engine_flags.toml").read_bytes())

every_fix = pytest.mark.parametrize("fix", load_fixes(), ids=lambda f: f.id)
sound_fix = pytest.mark.parametrize(
    "fix", [f for f in load_fixes() if f.verdict != "refuted"], ids=lambda f: f.id
)
refuted_fix = pytest.mark.parametrize(
    "fix", [f for f in load_fixes() if f.verdict == "refuted"], ids=lambda f: f.id
)


def command_lines(fix: Fix) -> list[str]:
    variants = [Variant(commands=fix.commands, verify=fix.verify), *fix.per_engine.values()]
    return [line for v in variants for line in (*v.commands, v.verify) if line]


def flags_of(line: str, launcher: str) -> set[str]:
    """Options behind the launcher; for ollama, whose options are variables before it, those."""
    before, _, after = line.partition(launcher)
    if launcher == "ollama serve":
        return set(re.findall(r"OLLAMA_[A-Z_]+", before))
    return {w for w in shlex.split(after, comments=True) if re.match(r"--?[A-Za-z]", w)}


@every_fix
def test_names_only_classes_engines_and_rows_that_exist(fix):
    """A misspelt class, engine or row would silently never match."""
    assert set(fix.classes) and set(fix.classes) <= CLASSES
    assert {*fix.engines, *fix.per_engine} <= ENGINES
    assert set(fix.per_engine) <= set(fix.engines or ENGINES)
    assert set(fix.removes) <= ROWS


@every_fix
def test_cites_a_section_beside_a_row(fix):
    """A row of the claims table is found again in the document by its section."""
    rows = [c for c in fix.documents if re.fullmatch(r"D[0-4]-\d\d", c)]
    sections = [c for c in fix.documents if re.fullmatch(r"D[0-4] sections? [\d.]+(-[\d.]+)?", c)]

    assert sorted(fix.documents) == sorted(rows + sections)
    assert {c[:2] for c in rows} == {c[:2] for c in sections}


@every_fix
def test_is_written_in_english_and_fits_a_terminal(fix):
    """No text of the sources is carried over, and prose lines fit 80 columns."""
    text = " ".join([fix.title, fix.claim, fix.source, fix.body, *command_lines(fix)])

    assert [] == re.findall(r"[\u3000-\u9fff\uff00-\uffef]", text)
    assert [] == [line for line in fix.body.splitlines() if len(line) > 80]


@every_fix
def test_title_is_one_imperative_line(fix):
    """It stands alone in a report: a capital, no full stop, nothing in brackets."""
    assert re.fullmatch(r"[A-Z][^\n]*[^.\s]", fix.title)
    assert len(fix.title) <= 76


@every_fix
def test_known_evidence_and_claim_are_stated(fix):
    """What is known and what the documents promise are different things; both are said."""
    assert fix.source
    assert fix.claim


@sound_fix
def test_offered_fix_says_what_a_user_must_know(fix):
    """Condition, counter-indication, risk, a command, a check, and how to take it back or confirm it."""
    assert fix.precondition and fix.contraindication and fix.risk
    assert fix.verify
    assert fix.commands or set(fix.per_engine) == set(fix.engines)
    assert () == fix.instead
    assert "## What it does" in fix.body and "## Why it helps" in fix.body and "## When not" in fix.body
    assert re.search(r"^## Check", fix.body, re.MULTILINE)


@sound_fix
def test_offered_fix_can_be_bounded(fix):
    """It touches a row of each class that has rows, so that no gain is promised out of thin air."""
    for cls in set(fix.classes) & CLASS_ROWS.keys():
        assert set(fix.removes) & CLASS_ROWS[cls], f"{fix.id} removes nothing that {cls} consists of"


@pytest.mark.parametrize("engine", ENGINE_FLAGS)
def test_flags_of_engines_are_looked_up(engine):
    """An invented flag stops the reader's server; the list says where each was seen."""
    launcher = ENGINE_FLAGS[engine]["launcher"]
    lines = [line for fix in load_fixes() for line in command_lines(fix) if launcher in line]

    used = {flag for line in lines for flag in flags_of(line, launcher)}

    assert set(ENGINE_FLAGS[engine]["flags"]) == used


def test_an_engine_is_told_its_own_command():
    """A table under per_engine starts that engine and no other."""
    for fix in load_fixes():
        for engine, variant in fix.per_engine.items():
            foreign = [t["launcher"] for e, t in ENGINE_FLAGS.items() if e != engine]
            assert not any(name in line for line in variant.commands for name in foreign), fix.id


def test_every_class_has_two_sound_fixes():
    """One way out may be barred; more load is the only cure for too little of it."""
    sound = Counter(cls for fix in load_fixes() if fix.verdict != "refuted" for cls in fix.classes)

    assert ["insufficient-load"] == [cls for cls in sorted(CLASSES) if sound[cls] < 2]


@sound_fix
def test_verify_is_a_perfdoctor_command(fix):
    """Every fix can be checked with this tool, before and after."""
    for variant in (fix.verify, *(v.verify for v in fix.per_engine.values() if v.verify)):
        assert variant.startswith(("perfdoctor load-test ", "perfdoctor diagnose "))


@every_fix
def test_placeholders_are_known(fix):
    """A misspelt placeholder would be a KeyError in the middle of a diagnosis."""
    used = {name for line in command_lines(fix) for name in re.findall(r"(?<!\$)\{([a-z_]+)\}", line)}

    assert used <= placeholder_values(RunFacts()).keys()


@every_fix
def test_names_only_rules_of_its_classes(fix):
    """A fix for some rules of a class names them by the files they are."""
    rules = {name: rule.cls for name, rule, _ in registry.discover("perfdoctor.diagnosis.rules", "RULE")}

    assert {rules[name] for name in fix.rules} <= set(fix.classes)


@every_fix
def test_says_how_to_take_it_back(fix):
    """Also a refuted one: somebody may have followed the document."""
    assert re.fullmatch(r"[A-Za-z_].*[.)]", fix.rollback)


@every_fix
def test_promises_stand_beside_their_rows(fix):
    """A number is of a row that the fix cites; the documents promise nobody a loss."""
    assert set(fix.promised) <= set(fix.documents)
    assert all(factor > 1 for factor in fix.promised.values())


@every_fix
def test_measurements_are_complete(fix):
    """Where, on what and how; the interval holds the ratio; every key is one that is read."""
    _, head, _ = (FOLDER / f"{fix.id}.md").read_text(encoding="utf-8").split("+++\n", 2)
    for one in msgspec.toml.decode(head).get("measured", []):
        assert one.keys() <= set(Measured.__struct_fields__)
    for measured in fix.measured:
        low, high = measured.interval or (measured.ratio, measured.ratio)
        assert 0 < low <= measured.ratio <= high
        assert measured.hardware and measured.model and measured.versions and measured.how


@every_fix
def test_settings_are_those_of_the_local_server(fix):
    """What `perfdoctor verify` starts. Names that the server is about to get are let through."""
    known = _choose.known().keys()
    for settings in (fix.before, fix.switch):
        assert settings.keys() <= known | PENDING_SWITCHES | set(LAUNCH)
        _choose.check({name: value for name, value in settings.items() if name in known})
    assert fix.before != fix.switch or not fix.switch


@refuted_fix
def test_refuted_fix_says_why_and_what_instead(fix):
    """The page gives the reason and names replacements that exist and are sound."""
    sound = {f.id for f in load_fixes() if f.verdict != "refuted"}

    assert "## Why it is refuted" in fix.body
    assert "## What to do instead" in fix.body
    assert fix.instead and set(fix.instead) <= sound
    assert fix.contraindication and fix.risk


@refuted_fix
def test_refuted_fix_carries_no_command(fix):
    """Nothing that could be pasted by mistake."""
    assert [] == command_lines(fix)


@pytest.mark.parametrize("row", REFUTED_ROWS)
def test_wrong_claim_of_the_documents_has_a_refutation(row):
    """Whoever read the document finds the page that contradicts it."""
    assert any(row in f.documents for f in load_fixes() if f.verdict == "refuted")


def test_class_rows_are_what_the_rules_claim():
    """Otherwise a fix could promise more than its finding holds, or nothing at all."""
    costs: dict[str, set[str]] = {}
    for _, rule, _ in registry.discover("perfdoctor.diagnosis.rules", "RULE"):
        if rule.cost:
            costs.setdefault(rule.cls, set()).update(rule.cost)

    assert costs == {cls: set(rows) for cls, rows in CLASS_ROWS.items()}


GOOD = """
title = "Do it"
classes = ["scheduling"]
verdict = "confirmed"
documents = []
source = "s"
changes_output = "maybe"
needs_restart = true
"""


def test_a_file_is_front_matter_and_page():
    """Between the marks TOML, after them the page, the name from outside."""
    fix = parse_fix("do-it", f"+++\n{GOOD}+++\n## What it does\nIt.\n")

    assert "do-it" == fix.id
    assert "## What it does\nIt." == fix.body
    assert (1.0, 1.0) == fix.leaves


@pytest.mark.parametrize(
    "extra",
    [
        'verdikt = "x"',
        'title = "x"',
        "leaves = [0.0, 0.5]",
        "leaves = [0.6, 0.5]",
        "leaves = [0.5, 1.1]",
        "switch = { max_batch = 8 }",
        'measured = [{ hardware = "x", ratio = 2.0 }]',
    ],
)
def test_a_broken_front_matter_is_refused(extra):
    """Unknown keys, double keys, shares outside (0, 1]: a fix that leaves nothing would promise infinity."""
    with pytest.raises(ValueError):
        parse_fix("do-it", f"+++\n{GOOD}{extra}\n+++\nbody")
