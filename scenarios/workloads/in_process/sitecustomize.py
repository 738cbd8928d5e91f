"""Faults inside the model server's process: this folder comes first on the PYTHONPATH of a Python server.

PERFDOCTOR_THREAD says what a second thread does: `spin` computes in Python and rarely lets the interpreter
lock go; `hash` computes in native code with the lock released. It begins a few seconds after the server's
start, so that loading is undisturbed. PERFDOCTOR_FAULT=NAME:AMOUNT lays a function of generate_faults.py over
transformers' generate() as soon as that is imported, PERFDOCTOR_TOKENIZER=naive another encoder over its own.
"""

import importlib.util
import os
import sys
import threading
import time

START_S = 8.0


def _spin() -> None:
    while True:
        sum(range(2000))


def _run(work: str) -> None:
    time.sleep(START_S)
    import generate_faults

    {"spin": _spin, "hash": generate_faults.hash_blocks}[work]()


class _After:
    """An import hook that does something once a module has been imported."""

    def __init__(self, module, action):
        self._module, self._action = module, action

    def find_spec(self, name, path=None, target=None):
        if name != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            self._action(module)

        spec.loader.exec_module = exec_module
        return spec


def _lay_over(module) -> None:
    import generate_faults

    fault = getattr(generate_faults, NAME)
    module.GenerationMixin.generate = fault(module.GenerationMixin.generate, AMOUNT)


def _encode_slowly(module) -> None:
    import naive_encoder

    base = module.PreTrainedTokenizerBase
    base.__call__ = naive_encoder.before(base.__call__)


if work := os.environ.pop("PERFDOCTOR_THREAD", ""):
    threading.Thread(target=_run, args=(work,), name="rival", daemon=True).start()
if os.environ.pop("PERFDOCTOR_TOKENIZER", ""):
    sys.meta_path.insert(0, _After("transformers.tokenization_utils_base", _encode_slowly))
NAME, _, AMOUNT = os.environ.pop("PERFDOCTOR_FAULT", "").partition(":")
if NAME:
    sys.meta_path.insert(0, _After("transformers.generation.utils", _lay_over))
