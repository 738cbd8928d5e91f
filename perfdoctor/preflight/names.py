"""The served model's name, from `/v1/models` and what the user asked for. Pure."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from perfdoctor.errors import UnknownModel

SHOWN = 12  # names listed in a message
LONGEST_SHOWN = 100  # characters of each


def choose(
    models: Sequence[Mapping[str, Any]], asked: str | None, engine: str, root: str
) -> Mapping[str, Any]:
    """The entry to drive. Raises UnknownModel when there is no such model, or several and none is named.

    llama.cpp answers under any name with the one model it has, so a name it does not list is accepted there.
    """
    ids = [str(model["id"]) for model in models]
    if asked is None:
        return _only(models, ids, root)
    for model in models:
        if asked in (model["id"], *_aliases(model)):
            return model
    if engine == "llama.cpp" and len(models) == 1:
        return models[0]
    near = difflib.get_close_matches(asked, ids, n=1)
    raise UnknownModel(
        f"{root} serves no model named '{_short(asked)}'",
        f"It serves: {_listed(ids)}." if ids else "Its list of models is empty.",
        f"use --model {_quoted(near[0] if near else ids[0])}" if ids else "start the server with a model",
    )


def _only(models: Sequence[Mapping[str, Any]], ids: Sequence[str], root: str) -> Mapping[str, Any]:
    """The one model, not counting adapters, which name their parent, nor unloaded ones beside a loaded."""
    bases = [model for model in models if not model.get("parent")]
    loaded = [model for model in bases if _status(model) == "loaded"]
    candidates = loaded or bases
    if len(candidates) == 1:
        return candidates[0]
    if not ids:
        raise UnknownModel(
            f"{root} lists no model",
            "It was started without one, or has not loaded it yet.",
            "load a model, or name the one to ask for: --model NAME",
        )
    raise UnknownModel(
        f"{root} serves {len(ids)} models, and none was named",
        f"They are: {_listed(ids)}.",
        f"use --model {_quoted(ids[0])}",
    )


def _aliases(model: Mapping[str, Any]) -> tuple[str, ...]:
    aliases = model.get("aliases")
    return tuple(str(alias) for alias in aliases) if isinstance(aliases, list) else ()


def _status(model: Mapping[str, Any]) -> object:
    status = model.get("status")
    return status.get("value") if isinstance(status, dict) else None


def _listed(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(_short(name) for name in ids[:SHOWN]) + more


def _quoted(name: str) -> str:
    return shlex.quote(_short(name))


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_SHOWN else name[:LONGEST_SHOWN] + "..."
