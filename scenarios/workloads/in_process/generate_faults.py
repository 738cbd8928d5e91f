"""Mistakes around `model.generate()`, each as a function (generate, amount) -> generate.

They are imported when transformers' own generate is, so the server's start is as ever.
"""

import functools
import threading
import time

PERIOD_S = 1.0
BLOCK = b"x" * 2**20  # hashlib releases the lock above 2,047 bytes


def hash_blocks():
    """Native code without end, with the interpreter lock released."""
    import hashlib

    while True:
        hashlib.sha256(BLOCK).digest()


def _each_token(generate, make):
    """`generate` with something done at each token; `make(model)` prepares it at the first call."""
    from transformers import LogitsProcessorList

    done = {}

    @functools.wraps(generate)
    def faulty(model, *args, **kwargs):
        if id(model) not in done:
            done[id(model)] = make(model)

        def process(_, scores):
            done[id(model)]()
            return scores

        processors = [*(kwargs.pop("logits_processor", None) or ()), process]
        return generate(model, *args, logits_processor=LogitsProcessorList(processors), **kwargs)

    return faulty


def _before_first(generate, prepare):
    """`generate`, with `prepare(model)` called once before."""
    seen = set()

    @functools.wraps(generate)
    def faulty(model, *args, **kwargs):
        if id(model) not in seen:
            seen.add(id(model))
            prepare(model)
        return generate(model, *args, **kwargs)

    return faulty


def empty_cache(generate, _):
    """The allocator's cache is emptied after each token, as advised against running out of memory."""
    import torch

    return _each_token(generate, lambda model: torch.cuda.empty_cache)


def host_copies(generate, amount):
    """A table that stays in ordinary host memory is sent to the GPU for each token: `amount` bytes."""
    import torch

    def make(model):
        table = torch.ones(int(float(amount)) // 2, dtype=torch.bfloat16)
        return lambda: table.to(model.device)

    return _each_token(generate, make)


def no_kv_cache(generate, _):
    """The keys and values of earlier tokens are computed anew for each token."""

    @functools.wraps(generate)
    def faulty(model, *args, **kwargs):
        return generate(model, *args, use_cache=False, **kwargs)

    return faulty


def offload(generate, _):
    """The weights are kept on the host and sent to the GPU in each step, layer by layer."""

    def prepare(model):
        from accelerate import cpu_offload

        cpu_offload(model, execution_device=model.device)

    return _before_first(generate, prepare)


def python_thread(generate, amount):
    """A thread that computes in Python for a share `amount` of each second."""

    def spin():
        while True:
            ends = time.monotonic() + PERIOD_S * float(amount)
            while time.monotonic() < ends:
                sum(range(2000))
            time.sleep(PERIOD_S * (1 - float(amount)))

    return _before_first(generate, lambda _: _start(spin))


def native_thread(generate, _):
    """A thread that computes without end, with the interpreter lock released."""
    return _before_first(generate, lambda _: _start(hash_blocks))


def _start(run):
    threading.Thread(target=run, name="rival", daemon=True).start()
