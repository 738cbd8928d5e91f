"""Finds out what answers at an endpoint before any load is sent: model, engine, process tree, sizes.

`discover` is the whole of it; `address` is its view of a target's address; `find_local_server` looks for a
server when none was named; `transport` is the way to it; `placement` asks where the model is.
Nothing here generates a token.
"""

from perfdoctor.preflight.control import transport
from perfdoctor.preflight.discover import address, discover, placement
from perfdoctor.preflight.nearby import Search, find_local_server

__all__ = ["Search", "address", "discover", "find_local_server", "placement", "transport"]
