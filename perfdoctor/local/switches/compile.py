"""The decode step goes through torch.compile.

Kernels are fused, and on a GPU with `reduce-overhead` the whole step is replayed as a CUDA graph. The first
step takes about a minute; it is compiled again when a request needs a larger cache. Prefill stays as it is.
On a CPU it needs a C++ compiler.
"""

from __future__ import annotations

from typing import Any

from perfdoctor.local.switches._switch import Plan, Switch


def _apply(_: Any, plan: Plan, mode: str) -> None:
    from transformers import CompileConfig

    config = CompileConfig(mode=mode)
    config._compile_all_devices = True  # or generate() compiles on GPUs only
    plan.config |= {"disable_compile": False, "compile_config": config}
    plan.rehearse = True


SWITCH = Switch(
    values=("reduce-overhead", "default"),
    apply=_apply,
    needs={"cache": "static"},
    excludes=("graph",),
)
