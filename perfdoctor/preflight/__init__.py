"""Finds out what answers at an endpoint before any load is sent: model, engine, process tree, sizes.

`discover` is the whole of it; `normalise` is its view of an address; `find_local_server` looks for a server
when none was named. Nothing here generates a token.
"""

from perfdoctor.preflight.control import normalise
from perfdoctor.preflight.discover import discover
from perfdoctor.preflight.nearby import Search, find_local_server

__all__ = ["Search", "discover", "find_local_server", "normalise"]
