"""One model in different ways by turns: the same answers, and each way as it was at its last turn."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
from test_switches import QUESTIONS, answer

from perfdoctor.errors import ModelError
from perfdoctor.local.switches import kv

pytestmark = pytest.mark.slow


@pytest.fixture
def variants() -> Any:
    """Of the tiny model, loaded in this process."""
    from perfdoctor.local import load, models
    from perfdoctor.local.variants import Variants

    source = models.resolve("tiny")
    models.prepare(source)
    config = load.read_config(source)
    return Variants(load.load(source, config, "cpu", "float32", lambda _: nullcontext()))


def test_each_way_gives_the_same_tokens_whatever_came_before(variants: Any):
    """Switches of plan, cache and attention, in turn with none; none of them stays behind."""
    plain, _ = variants.use({})
    expected = [answer(plain, *question) for question in QUESTIONS]
    attention = plain.model.config._attn_implementation

    for settings in ({"cache": "static"}, {"kv": "off"}, {"attn": "eager"}, {}, {"cache": "static"}):
        found, _ = variants.use(settings)
        assert expected == [answer(found, *question) for question in QUESTIONS], settings

    again, fresh = variants.use({})
    assert (plain.plan, False, attention) == (again.plan, fresh, again.model.config._attn_implementation)


def test_a_way_is_kept_for_its_next_turn(variants: Any):
    """Its cache too, to which a compiled step is bound."""
    static, fresh = variants.use({"cache": "static"})
    variants.use({})
    again, not_fresh = variants.use({"cache": "static"})

    assert (True, False) == (fresh, not_fresh)
    assert static.plan is again.plan


def test_a_forward_of_its_own_is_taken_back(variants: Any, monkeypatch: pytest.MonkeyPatch):
    """As a captured step has one."""
    model = variants.use({})[0].model
    plain = model.forward

    def apply(model: Any, plan: Any, value: str) -> None:
        model.forward = partial(plain)

    monkeypatch.setattr(kv, "SWITCH", kv.SWITCH.__class__(values=("off",), apply=apply))
    variants.use({"kv": "off"})
    own = model.forward
    variants.use({})

    assert own is not plain and "forward" not in model.__dict__
    variants.use({"kv": "off"})
    assert model.forward is own


def test_a_wrong_way_changes_nothing(variants: Any):
    """It goes on as it was."""
    static, _ = variants.use({"cache": "static"})

    for wrong in ({"cache": "dynamic"}, {"attn": "flash_attention_2"}):
        with pytest.raises(ModelError):
            variants.use(wrong)

    again, fresh = variants.use({"cache": "static"})
    assert (static.plan, False) == (again.plan, fresh)


def test_what_is_no_matter_of_a_loaded_model_stays(variants: Any, monkeypatch: pytest.MonkeyPatch):
    """A switch that is not live has the value of the start."""
    switch = kv.SWITCH.__class__(values=("off",), apply=kv.SWITCH.apply, live=False)
    monkeypatch.setattr(kv, "SWITCH", switch)
    variants.use({"kv": "off"})

    with pytest.raises(ModelError, match="kv cannot be changed while the model is loaded"):
        variants.use({})
