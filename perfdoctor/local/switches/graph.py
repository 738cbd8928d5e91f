"""The decode step is captured once as a CUDA graph and replayed, with the kernels that it has.

What is captured is one forward pass of one token: never a whole generate(), whose stopping and sampling
happen on the host and would be frozen. Shapes and addresses must stay, hence the static cache.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from perfdoctor.local.switches._switch import Plan, Switch

Replay = Callable[[], Any]  # runs the captured step; its result is the same object each time


def _apply(model: Any, plan: Plan, _: str) -> None:
    model.forward = graphed(model.forward, captured)
    plan.rehearse = True


def graphed(
    forward: Callable[..., Any], capture: Callable[[Callable[[], Any]], Replay]
) -> Callable[..., Any]:
    """`forward` with its one-token steps replayed.

    The first step of a new signature runs as it is, since libraries allocate then; the second is captured.
    A step is recognised by the shapes of its tensors and the identity of everything that is none, such as
    the cache.
    """
    seen: set[Any] = set()
    replays: dict[Any, tuple[dict[str, Any], Replay]] = {}

    @functools.wraps(forward)
    def step(*args: Any, **inputs: Any) -> Any:
        ids = inputs.get("input_ids")
        if args or ids is None or ids.shape[-1] != 1:
            return forward(*args, **inputs)
        key = signature(inputs)
        if key not in seen:
            seen.clear()  # a larger cache has come: the old one's memory is let go
            replays.clear()
            seen.add(key)
            return forward(**inputs)
        if key not in replays:
            kept = own_copy(inputs)
            replays[key] = kept, capture(lambda: forward(**kept))
        kept, replay = replays[key]
        overwrite(kept, inputs)
        return replay()

    return step


def captured(run: Callable[[], Any]) -> Replay:
    """Captured on the current device; capturing executes nothing."""
    import torch

    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads may go on with CUDA
        result = run()

    def replay() -> Any:
        graph.replay()
        return result

    return replay


def signature(tree: Any) -> Any:
    """Hashable; equal for calls that may share a graph."""
    import torch

    if isinstance(tree, torch.Tensor):
        return tuple(tree.shape), tree.dtype, tree.device
    if isinstance(tree, dict):
        return tuple((key, signature(value)) for key, value in sorted(tree.items()))
    return tree if isinstance(tree, bool | int | float | str | None) else id(tree)


def own_copy(tree: Any) -> Any:
    """The same with tensors of its own, whose addresses the graph keeps."""
    import torch

    if isinstance(tree, torch.Tensor):
        return tree.clone()
    return {key: own_copy(value) for key, value in tree.items()} if isinstance(tree, dict) else tree


def overwrite(kept: Any, new: Any) -> None:
    """Gives the tensors of `kept` the values of those of `new`."""
    import torch

    if isinstance(kept, torch.Tensor):
        kept.copy_(new)
    elif isinstance(kept, dict):
        for key, value in kept.items():
            overwrite(value, new[key])


SWITCH = Switch(values=("decode",), apply=_apply, cuda=True, needs={"cache": "static"}, excludes=("compile",))
