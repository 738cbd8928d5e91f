"""A small batching engine with a paged KV cache: real admission, real preemption, real recomputation.

The cache is a budget of blocks. A request is admitted when its prompt fits; when a running one needs a block
and none is left, the youngest is thrown out, and its prompt and answer so far are computed anew when it
returns. A forward pass is matrix products on one CPU thread, the same for one sequence as for several.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

BLOCK = 16  # tokens
WIDTH, LAYERS = 512, 6
CHUNK = 128  # prompt tokens in one product


@dataclass
class Sequence:
    prompt: int
    wanted: int
    emit: Callable[[bool], None]  # told of each token, and whether it was the last
    arrived_s: float
    done: int = 0
    admitted_s: float | None = None
    first_s: float | None = None
    blocks: int = 0
    cancelled: bool = False

    @property
    def length(self) -> int:
        return self.prompt + self.done


@dataclass
class Counters:
    """What /metrics shows; histograms as sum and count."""

    preemptions: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    finished: int = 0
    sums: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("queue", "prefill", "decode", "ttft", "e2e"), 0.0)
    )
    steps: int = 0


class Engine:
    def __init__(self, blocks: int, most_sequences: int) -> None:
        self.blocks, self.free, self.most = blocks, blocks, most_sequences
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.counters = Counters()
        self._changed = threading.Condition()
        self._weights = np.full((WIDTH, WIDTH), 0.001, np.float32)

    def submit(self, sequence: Sequence) -> None:
        with self._changed:
            self.waiting.append(sequence)
            self._changed.notify()

    def run(self) -> None:
        """Forever, in a thread of its own."""
        while True:
            with self._changed:
                while not (self.waiting or self.running):
                    self._changed.wait()
                admitted = self._admit()
            for sequence in admitted:
                self._prefill(sequence)
            if self.running:
                self._decode()

    def _admit(self) -> list[Sequence]:
        admitted = []
        while self.waiting and len(self.running) < self.most:
            need = -(-self.waiting[0].length // BLOCK) + 1
            if need > self.free:
                break
            sequence = self.waiting.popleft()
            if sequence.cancelled:
                continue
            sequence.blocks, self.free = need, self.free - need
            self.running.append(sequence)
            admitted.append(sequence)
        return admitted

    def _prefill(self, sequence: Sequence) -> None:
        now = time.monotonic()
        again = sequence.admitted_s is not None
        sequence.admitted_s = sequence.admitted_s or now
        for start in range(0, sequence.length, CHUNK):
            self._forward(min(CHUNK, sequence.length - start))
        if not again:
            self.counters.prompt_tokens += sequence.prompt
            self.counters.sums["queue"] += now - sequence.arrived_s

    def _decode(self) -> None:
        """One token for everybody who has room for it."""
        for sequence in list(self.running):
            if sequence in self.running and sequence.length >= sequence.blocks * BLOCK:
                self._grow(sequence)
        if not self.running:
            return
        self._forward(len(self.running))
        self.counters.steps += 1
        for sequence in list(self.running):
            self._emit(sequence)

    def _grow(self, sequence: Sequence) -> None:
        while self.free == 0:
            youngest = self.running[-1]
            self._leave(youngest)
            if not youngest.cancelled:
                self.counters.preemptions += 1
                with self._changed:
                    self.waiting.appendleft(youngest)
            if youngest is sequence:
                return
        sequence.blocks, self.free = sequence.blocks + 1, self.free - 1

    def _leave(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self.free, sequence.blocks = self.free + sequence.blocks, 0

    def _emit(self, sequence: Sequence) -> None:
        now = time.monotonic()
        if sequence.first_s is None:
            sequence.first_s = now
            self.counters.sums["ttft"] += now - sequence.arrived_s
        sequence.done += 1
        self.counters.output_tokens += 1
        last = sequence.done >= sequence.wanted
        sequence.emit(last)
        if last or sequence.cancelled:
            self._leave(sequence)
            self._count(sequence, now)

    def _count(self, sequence: Sequence, now: float) -> None:
        assert sequence.admitted_s is not None and sequence.first_s is not None
        self.counters.finished += 1
        self.counters.sums["prefill"] += sequence.first_s - sequence.admitted_s
        self.counters.sums["decode"] += now - sequence.first_s
        self.counters.sums["e2e"] += now - sequence.arrived_s

    def _forward(self, rows: int) -> None:
        state = np.ones((rows, WIDTH), np.float32)
        for _ in range(LAYERS):
            state = state @ self._weights
