"""Choices made while loading, and foreign failures in our words."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from perfdoctor.errors import ModelError
from perfdoctor.local import load
from perfdoctor.local.facts import Sizes, with_sizes
from perfdoctor.model import TargetFacts


@pytest.mark.parametrize(
    ("asked", "device", "saved", "dtype"),
    [
        (None, "cpu", "torch.bfloat16", "bfloat16"),
        (None, "cpu", "torch.float32", "float32"),
        (None, "cpu", None, "bfloat16"),
        (None, "cuda:0", "torch.float32", "bfloat16"),
        ("float32", "cuda:0", "torch.bfloat16", "float32"),
    ],
)
def test_the_dtype_is_the_one_asked_for_else_the_devices(
    asked: str | None, device: str, saved: str | None, dtype: str
):
    """A CPU keeps the checkpoint's own; a GPU takes bfloat16; unsaved counts as bfloat16."""
    assert dtype == load.pick_dtype(asked, device, SimpleNamespace(dtype=saved))


def test_the_dtype_has_an_older_name():
    """transformers 4 called it torch_dtype."""
    assert "float16" == load.pick_dtype(None, "cpu", SimpleNamespace(torch_dtype="float16"))


def test_a_device_is_named_with_its_index():
    """As the run's facts have it."""
    assert ["cpu", "cuda:0", "cuda:1"] == [load.pick_device(name) for name in ("cpu", "cuda", "cuda:1")]


@pytest.mark.parametrize(
    ("configured", "tokenizers", "ids"),
    [(None, None, set()), (None, 3, {3}), (4, 3, {4}), ([4, 5], 3, {4, 5})],
)
def test_the_ends_of_a_turn(configured: int | list[int] | None, tokenizers: int | None, ids: set[int]):
    """The generation settings come first."""
    assert ids == load.end_ids(configured, tokenizers)


def test_unset_sampling_is_neutral():
    """Whatever this transformers leaves None."""
    own = SimpleNamespace(do_sample=None, temperature=None, top_p=None, top_k=None)

    assert load.Defaults(do_sample=False, temperature=1.0, top_p=1.0, top_k=0) == load.defaults_of(own, False)
    assert load.defaults_of(own, random=True).do_sample


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
    ids=["cuda", "python", "torch on the cpu"],
)
def test_out_of_memory_is_called_so(error: Exception):
    """Three libraries, three types, one sentence."""
    assert "not enough memory" in load.explain(error).what


def test_any_other_failure_keeps_its_first_line():
    """The rest is in the log."""
    error = load.explain(RuntimeError("shapes differ\nmany more lines"))

    assert "RuntimeError: shapes differ" == error.why


def test_our_own_error_passes():
    """It is explained already."""
    error = ModelError("a", "b", "c")

    assert error is load.explain(error)


DEEPSEEK = Sizes(
    parameters=1_777_088_000, embedding=151_936 * 1536, tied=False, layers=28, kv_heads=2, head_dim=128
)


def test_a_step_reads_all_but_the_input_embedding():
    """The running example's numbers, diagnosis reference section 4."""
    facts = with_sizes(TargetFacts(), DEEPSEEK, "bfloat16")

    assert 3_554_176_000 == facts.weights_bytes
    assert 3_087_428_608 == facts.step_bytes
    assert 3_087_428_608 == facts.step_flops
    assert 28_672 == facts.kv_bytes_per_token


def test_a_tied_embedding_is_read_as_the_head():
    """Then nothing is left out; twice the bytes in float32."""
    tied = Sizes(parameters=100, embedding=40, tied=True, layers=1, kv_heads=1, head_dim=2)

    facts = with_sizes(TargetFacts(), tied, "float32")

    assert (400, 400, 200) == (facts.weights_bytes, facts.step_bytes, facts.step_flops)
