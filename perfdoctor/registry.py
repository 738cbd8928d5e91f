"""Discovery: a package's folder is the list of its members; nothing registers itself.

A member is a module that defines the named constant. Its id is the file name with `_` turned into `-`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any


def member_ids(package: str) -> tuple[str, ...]:
    """Ids of all public modules of a package, sorted, without importing them."""
    paths = importlib.import_module(package).__path__
    names = sorted(m.name for m in pkgutil.iter_modules(paths) if not m.name.startswith("_"))
    return tuple(name.replace("_", "-") for name in names)


def load_member(package: str, member: str, constant: str) -> tuple[Any, str]:
    """(the constant, the module's docstring). LookupError when the module lacks the constant."""
    module = importlib.import_module(f"{package}.{member.replace('-', '_')}")
    if not hasattr(module, constant):
        raise LookupError(f"{module.__name__} defines no {constant}")
    return getattr(module, constant), (module.__doc__ or "").strip()


def discover(package: str, constant: str) -> Iterator[tuple[str, Any, str]]:
    """(id, constant, docstring) of every member."""
    for member in member_ids(package):
        value, page = load_member(package, member, constant)
        yield member, value, page
