"""Switches of the local model: refused in time, off by default, and the same tokens as without."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from perfdoctor.errors import ModelError
from perfdoctor.local.switches import _choose, cache
from perfdoctor.local.switches._switch import Plan


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"casche": "static"}, "casche"),
        ({"cache": "dynamic"}, "dynamic"),
        ({"compile": "reduce-overhead"}, "compile=reduce-overhead"),
        ({"cache": "static", "compile": "default", "graph": "decode"}, "does not work like this"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_starts(asked: dict[str, str], named: str):
    """Unknown names and values, a missing need, two that exclude each other."""
    with pytest.raises(ModelError) as refused:
        _choose.check(asked)

    assert named in refused.value.what


def test_what_needs_a_gpu_is_refused_on_a_cpu():
    """Known only once the device is; a fitting combination passes until then."""
    asked = {"cache": "static", "graph": "decode"}

    _choose.check(asked)
    with pytest.raises(ModelError, match="needs a CUDA GPU"):
        _choose.applied(None, asked, cuda=False)


def test_nothing_is_changed_unless_asked_for():
    """An empty plan."""
    assert Plan() == _choose.applied(None, {}, cuda=False)


def answer(loaded: Any, prompt: str, tokens: int) -> str:
    """Greedy, through the very path that a request takes."""
    from perfdoctor.local.generation import Generation
    from perfdoctor.local.request import Request

    request = Request(id="1", prompt=prompt, max_tokens=tokens, temperature=0, ignore_eos=True)
    pieces: list[str] = []
    generation = Generation(
        loaded, request, lambda piece: pieces.append(piece.text), threading.Event(), lambda: 0.0
    )
    generation.run()
    return "".join(pieces)


@pytest.fixture(scope="module")
def eager() -> Any:
    """The tiny model, loaded in this process."""
    from contextlib import nullcontext

    from perfdoctor.local import load, models

    source = models.resolve("tiny")
    models.prepare(source)
    return load.load(source, load.read_config(source), "cpu", "float32", lambda _: nullcontext())


QUESTIONS = (("one two three", 30), ("what is a list?", 20), ("import of a module " * 12, 30))


@pytest.mark.slow
def test_a_static_cache_gives_the_same_tokens(eager: Any, monkeypatch: pytest.MonkeyPatch):
    """Also for the second request that uses it, and for one that needs a larger cache."""
    monkeypatch.setattr(cache, "LEAST_TOKENS", 64)
    static = replace(eager, plan=_choose.applied(eager.model, {"cache": "static"}, cuda=False))

    expected = [answer(eager, *question) for question in (*QUESTIONS, QUESTIONS[0])]
    found = [answer(static, *question) for question in (*QUESTIONS, QUESTIONS[0])]

    assert expected == found


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{"kv": "off"}, {"attn": "eager"}, {"attn": "sdpa"}])
def test_what_only_changes_the_way_gives_the_same_tokens(eager: Any, asked: dict[str, str]):
    """Without a cache, and by another kernel of attention; the model's own way is put back."""
    own = eager.model.config._attn_implementation
    expected = [answer(eager, *question) for question in QUESTIONS]

    changed = replace(eager, plan=_choose.applied(eager.model, asked, cuda=False))
    found = [answer(changed, *question) for question in QUESTIONS]
    used = eager.model.config._attn_implementation
    eager.model.set_attn_implementation(own)

    assert expected == found
    assert asked.get("attn", own) == used


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    """With the command that installs it, and what does without."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(ModelError, match="flash-attn") as refused:
        _choose.applied(None, {"attn": "flash_attention_2"}, cuda=True)

    assert "pip install flash-attn" in refused.value.do


@pytest.mark.slow
def test_a_replayed_step_gives_the_same_tokens(eager: Any, monkeypatch: pytest.MonkeyPatch):
    """The bookkeeping around a CUDA graph, with a replay that computes anew from the graph's own inputs."""
    from perfdoctor.local.switches import graph

    replays = 0

    def capture(run: Callable[[], Any]) -> graph.Replay:
        def replay() -> Any:
            nonlocal replays
            replays += 1
            return run()

        return replay

    expected = [answer(eager, *question) for question in QUESTIONS]
    static = replace(eager, plan=_choose.applied(eager.model, {"cache": "static"}, cuda=False))
    monkeypatch.setattr(eager.model, "forward", graph.graphed(eager.model.forward, capture))
    found = [answer(static, *question) for question in QUESTIONS]

    assert expected == found
    assert sum(tokens - 1 for _, tokens in QUESTIONS) - 1 == replays
