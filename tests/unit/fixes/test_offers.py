"""Which fixes a finding gets, in which order, how far they may promise, and what their commands become."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdoctor import registry
from perfdoctor.diagnosis.catalogue import Fix, Variant, load_fixes
from perfdoctor.diagnosis.prescribe import (
    CLASS_ROWS,
    MAX_OFFERS,
    amdahl,
    bound,
    device_of,
    fill,
    offers,
    placeholder_values,
)
from perfdoctor.model import GpuFacts, HostFacts, LedgerRow, Load, RunFacts, Scenario, Target, TargetFacts

RULES = {name: rule.cls for name, rule, _ in registry.discover("perfdoctor.diagnosis.rules", "RULE")}
ENGINES = (
    "perfdoctor-local",
    "transformers-serve",
    "vllm",
    "sglang",
    "tgi",
    "llama.cpp",
    "ollama",
    "unknown",
)
NO_PYTHON = ("gil-contention", "allocator-churn", "slow-tokenizer", "kv-cache-off")
# Who splits a model by layers computes the rest on the CPU; the others send the weights to the GPU.
CANNOT_HIT = {
    "llama.cpp": (*NO_PYTHON, "weights-offloaded"),
    "ollama": (*NO_PYTHON, "weights-offloaded", "event-loop-blocked"),
    "tgi": ("kv-cache-off", "layers-on-host", "event-loop-blocked"),
    "vllm": ("kv-cache-off", "layers-on-host"),
    "sglang": ("kv-cache-off", "layers-on-host"),
    "transformers-serve": ("layers-on-host",),
    "perfdoctor-local": ("layers-on-host",),
}
HITS = [(rule, engine) for rule in RULES for engine in ENGINES if rule not in CANNOT_HIT.get(engine, ())]
shares = st.floats(0, 1, allow_nan=False)


def fix(**changes) -> Fix:
    usual = {
        "id": "do-it",
        "title": "Do it",
        "classes": ("scheduling",),
        "verdict": "confirmed",
        "documents": (),
        "source": "measured",
        "removes": ("server_queue",),
        "leaves": (0.1, 0.5),
        "changes_output": False,
        "needs_restart": True,
        "body": "",
    }
    return Fix(**{**usual, **changes})


def facts(engine: str = "vllm", device: str | None = "cuda:0", **target) -> RunFacts:
    """An endpoint that serves `qwen` on port 8000, driven with four requests at a time."""
    kind = "local" if engine == "perfdoctor-local" else "endpoint"
    usual = {"kind": kind, "url": "http://127.0.0.1:8123", "model": "qwen", "model_path": "/models/qwen"}
    return RunFacts(
        target=TargetFacts(**{**usual, "engine": engine, "device": device, **target}),
        scenario=Scenario(target=Target(model="tiny"), load=Load(concurrency=4)),
        host=HostFacts(hostname="here", cores=8),
    )


def row(name: str, share: float) -> LedgerRow:
    return LedgerRow(row=name, seconds=share, share=share)


QUEUE = (row("server_queue", 0.75), row("unexplained", 0.25))


# ------------------------------------------------------------------------------ the bound


@given(share=shares, low=st.floats(0.001, 1), high=st.floats(0.001, 1))
def test_a_bound_never_exceeds_amdahl(share, low, high):
    """No fix promises more than the disappearance of its whole share, nor less than no change."""
    least, most = amdahl(share, (min(low, high), max(low, high)))

    assert 1 <= least <= most
    assert share == 1 or most <= 1 / (1 - share) * (1 + 1e-9)


@given(
    claimed=shares,
    other=shares,
    chosen=st.sampled_from([(f, c) for f in load_fixes() for c in f.classes if c in CLASS_ROWS]),
)
def test_no_catalogue_fix_promises_more_than_its_finding_holds(claimed, other, chosen):
    """Rows that another class owns add nothing, although the fix would shrink them too."""
    one, cls = chosen
    total = claimed + other or 1.0
    names = sorted(CLASS_ROWS[cls])
    rows = [row(n, claimed / total / len(names)) for n in names] + [row("client_wait", other / total)]

    gain = bound(one, cls, rows)

    assert gain is None or gain[1] <= 1 / max(1e-12, 1 - claimed / total) * (1 + 1e-9)


def test_bound_follows_from_the_share_and_what_is_left():
    """Three quarters of the time shrink to between a tenth and a half: 1 / 0.625 to 1 / 0.325."""
    assert (1 / 0.625, 1 / 0.325) == pytest.approx(bound(fix(), "scheduling", QUEUE))


@pytest.mark.parametrize("rows", [(), (row("decode", 0.9),)])
def test_bound_is_unknown_without_its_rows(rows):
    """No ledger, or one that is not divided so far, gives no number."""
    assert bound(fix(), "scheduling", rows) is None


def test_bound_is_unknown_for_a_finding_about_the_measurement():
    """A client at its limit holds no seconds of the server's."""
    assert bound(fix(classes=("client-limited",)), "client-limited", QUEUE) is None


def test_shares_beyond_the_whole_are_cut():
    """A broken ledger cannot promise more than a whole request."""
    assert (2.0, 10.0) == pytest.approx(amdahl(1.7, (0.1, 0.5)))
    assert (1.0, 1.0) == amdahl(-0.1, (0.1, 0.5))


# ------------------------------------------------------------------------------ who is offered


@pytest.mark.parametrize(("rule", "engine"), HITS)
@pytest.mark.parametrize("device", ["cpu", "cuda:0", None])
def test_every_rule_has_an_offer_for_every_engine_it_can_hit(rule, engine, device):
    """A finding without a way out is half a diagnosis; and never a refuted one, never a flood."""
    refuted = {f.id for f in load_fixes() if f.verdict == "refuted"}
    cls = RULES[rule]
    rows = [row(n, 0.5) for n in CLASS_ROWS.get(cls, ())]

    found = offers(cls, facts(engine, device), rows, rule=rule)

    assert 1 <= len(found) <= MAX_OFFERS
    assert not refuted & {o.id for o in found}
    assert all(o.verify and o.commands for o in found)


def test_refuted_fix_is_never_offered():
    """Even when it would fit best."""
    assert () == offers("scheduling", facts(), QUEUE, [fix(verdict="refuted", leaves=(0.01, 0.01))])


@pytest.mark.parametrize(
    ("changes", "engine", "device", "offered"),
    [
        ({}, "vllm", "cuda:0", True),
        ({"classes": ("disk-io",)}, "vllm", "cuda:0", False),
        ({"engines": ("vllm",)}, "vllm", "cuda:0", True),
        ({"engines": ("vllm",)}, "sglang", "cuda:0", False),
        ({"devices": ("cuda",)}, "vllm", "cuda:0", True),
        ({"devices": ("cuda",)}, "vllm", "cpu", False),
        ({"devices": ("cpu",)}, "vllm", "cuda:0", False),
    ],
)
def test_class_engine_and_device_decide(changes, engine, device, offered):
    """Empty means any; everything else must match."""
    assert offered == bool(offers("scheduling", facts(engine, device), QUEUE, [fix(**changes)]))


@pytest.mark.parametrize(
    ("rules", "rule", "offered"),
    [((), "serial-server", True), (("overload",), "overload", True), (("overload",), "serial-server", False),
     (("overload",), None, True)],
)  # fmt: skip
def test_a_fix_for_one_rule_is_not_offered_for_another(rules, rule, offered):
    """A full cache and a cache that is off are one class, and want the opposite."""
    assert offered == bool(offers("scheduling", facts(), QUEUE, [fix(rules=rules)], rule))


@pytest.mark.parametrize(("dtype", "offered"), [("float32", True), ("bfloat16", False), (None, True)])
def test_dtype_hides_a_fix_only_when_it_is_known(dtype, offered):
    """Nobody is told to load in bfloat16 what is bfloat16 already."""
    assert offered == bool(offers("scheduling", facts(dtype=dtype), QUEUE, [fix(dtypes=("float32",))]))


@pytest.mark.parametrize(
    ("device", "remote", "gpus", "expected"),
    [
        ("cuda:1", False, 0, "cuda"),
        ("cpu", False, 1, "cpu"),
        (None, False, 0, "cpu"),
        (None, False, 1, None),
        (None, True, 0, None),
    ],
)
def test_device_is_guessed_only_where_it_is_certain(device, remote, gpus, expected):
    """A server on this host cannot use a GPU that this host has not; elsewhere nobody knows."""
    run = facts(device=device, remote=remote)
    host = HostFacts(hostname="here", gpus=tuple(GpuFacts(index=i, name="x") for i in range(gpus)))

    assert expected == device_of(msgspec.structs.replace(run, host=host))


def test_confirmed_comes_before_conditional_then_the_larger_gain():
    """A sure small gain is named before a large doubtful one."""
    fixes = [
        fix(id="doubtful", verdict="conditional", leaves=(0.01, 0.1)),
        fix(id="small", leaves=(0.6, 0.7)),
        fix(id="large", leaves=(0.1, 0.7)),
    ]

    found = offers("scheduling", facts(), QUEUE, fixes)

    assert ["large", "small", "doubtful"] == [o.id for o in found]


def test_a_fix_without_a_gain_is_left_out():
    """Two percent cannot be measured here, so they are no advice."""
    one = fix(leaves=(0.1, 0.5))

    assert () == offers("scheduling", facts(), [row("server_queue", 0.02)], [one])
    assert offers("scheduling", facts(), [row("server_queue", 0.03)], [one])


def test_an_unknown_gain_does_not_hide_a_fix():
    """Without a ledger the fix still stands, without a number."""
    (found,) = offers("scheduling", facts(), (), [fix()])

    assert found.bound is None


# ------------------------------------------------------------------------------ commands


def test_commands_are_filled_in_from_the_run():
    """What the user pastes names his model, port and load."""
    one = fix(commands=("serve {model_path} --port {port} -np {concurrency}",), verify="test {url} {served}")

    (found,) = offers("scheduling", facts(), QUEUE, [one])

    assert ("serve /models/qwen --port 8123 -np 4",) == found.commands
    assert "test http://127.0.0.1:8123 qwen" == found.verify


def test_an_engine_may_have_its_own_commands():
    """The rest of the page is shared; what is not replaced stays."""
    own = {"vllm": Variant(commands=("vllm serve {model_path}",))}
    one = fix(commands=("other",), verify="check", per_engine=own)

    (for_vllm,) = offers("scheduling", facts("vllm"), QUEUE, [one])
    (for_tgi,) = offers("scheduling", facts("tgi"), QUEUE, [one])

    assert (("vllm serve /models/qwen",), "check") == (for_vllm.commands, for_vllm.verify)
    assert ("other",) == for_tgi.commands


def test_unknown_values_are_shown_as_such():
    """A remote server's path is nobody's to know: the gap is visible, not empty."""
    assert "serve <model_path> -x 1" == fill("serve {model_path} -x {n}", {"model_path": None, "n": "1"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/my models/q", "serve '/my models/q'"),
        ("x; rm -rf ~", "serve 'x; rm -rf ~'"),
        ("x\nrm -rf ~", "serve <m>"),
        ("", "serve <m>"),
    ],
)
def test_a_name_from_a_server_cannot_become_a_command(value, expected):
    """Model names come from outside; a pasted line must run one command."""
    assert expected == fill("serve {m}", {"m": value})


def test_shell_and_json_braces_are_left_alone():
    """Only lower-case words in plain braces are placeholders."""
    text = """--config '{"method": "ngram"}' ${HOME} '{{ .Host }}' {print $7}"""

    assert text == fill(text, {})


def test_a_local_model_moves_to_a_new_server():
    """Its child ended with the run, so its address is of no use in a command."""
    values = placeholder_values(facts("perfdoctor-local", url="http://127.0.0.1:45123", pid=77))

    assert ("http://127.0.0.1:8000", "8000", None) == (values["url"], values["port"], values["pid"])


@pytest.mark.parametrize(
    ("url", "port"),
    [("https://host/v1", "443"), ("http://host", "80"), ("http://host:99999", None), ("", None)],
)
def test_port_comes_from_the_address(url, port):
    """Implied ports are spelled out; a broken address gives a visible gap."""
    assert port == placeholder_values(facts(url=url))["port"]
