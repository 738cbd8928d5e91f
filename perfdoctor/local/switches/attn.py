"""How attention is computed: plain matrix products, PyTorch's fused kernel, or FlashAttention's own."""

from __future__ import annotations

import importlib.util
from typing import Any

from perfdoctor.errors import ModelError
from perfdoctor.local.switches._switch import Plan, Switch

FLASH = "flash_attention_2"


def _apply(model: Any, _: Plan, value: str) -> None:
    if value == FLASH:
        _require_flash(model)
    model.set_attn_implementation(value)


def _require_flash(model: Any) -> None:
    if importlib.util.find_spec("flash_attn") is None:
        what = f"the setting 'attn={FLASH}' needs the package flash-attn"
        do = "pip install flash-attn --no-build-isolation, or use attn=sdpa, which has a flash kernel too"
        raise ModelError(what, "it is not installed", do)
    if model.device.type != "cuda":
        raise ModelError(f"the setting 'attn={FLASH}' needs a CUDA GPU", "", "use attn=sdpa on a CPU")


SWITCH = Switch(values=("eager", "sdpa", FLASH), apply=_apply, excludes=("graph",))
