"""Where the keys and values of earlier tokens are kept.

`static` keeps one cache of fixed addresses for all requests instead of one that grows with each token. By
itself it saves next to nothing; it is what lets a step be compiled or captured.
"""

from __future__ import annotations

from typing import Any

from perfdoctor.errors import ModelError
from perfdoctor.local.switches._switch import Plan, Switch

LEAST_TOKENS = 1024  # a longer request doubles the cache, which is then compiled or captured anew


def _apply(model: Any, plan: Plan, _: str) -> None:
    import transformers

    if int(transformers.__version__.split(".")[0]) < 5:
        why = f"transformers {transformers.__version__} sizes a static cache for one generation"
        raise ModelError(
            "the setting 'cache=static' needs transformers 5", why, "pip install -U transformers"
        )
    plan.cache = StaticCaches(model.config)
    plan.config["disable_compile"] = True  # or generate() compiles whenever the cache is static


class StaticCaches:
    """One cache, emptied for each request and replaced by a larger one when a request does not fit."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self._cache: Any = None
        self._tokens = 0

    def __call__(self, tokens: int) -> Any:
        from transformers import StaticCache

        if tokens <= self._tokens:
            self._cache.reset()
            return self._cache
        self._tokens = max(LEAST_TOKENS, 1 << (tokens - 1).bit_length())
        self._cache = StaticCache(config=self._config, max_cache_len=self._tokens)
        return self._cache


SWITCH = Switch(values=("static",), apply=_apply)
