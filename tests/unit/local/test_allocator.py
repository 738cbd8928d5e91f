"""What the local server tells of torch's allocator."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
from perfdoctor.local import gpu


class Told:
    """A channel that remembers."""

    def __init__(self) -> None:
        self.absences: list[tuple[str, str]] = []

    def absent(self, probe: str, why: str) -> None:
        self.absences.append((probe, why))


def test_an_allocator_that_is_off_is_no_allocator_that_holds_nothing(monkeypatch: pytest.MonkeyPatch):
    """With PYTORCH_NO_CUDA_MEMORY_CACHING all statistics read 0: absent, with the reason."""
    monkeypatch.setattr(gpu.torch.cuda, "memory_allocated", lambda device: 0)
    channel: Any = Told()

    gpu.watch_allocator(channel, "cuda:0")

    ((probe, why),) = channel.absences
    assert "torch" == probe
    assert "allocator is off" in why
