"""What a connect meets when this machine, not the server, is the limit."""

from __future__ import annotations

import errno
import os


def limit_reached(error: OSError) -> str | None:
    """The system's words and the setting to change; None for any other error."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{os.strerror(error.errno)} on this machine: raise the limit with `ulimit -n`"
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            "no local port is free on this machine (EADDRNOTAVAIL): widen net.ipv4.ip_local_port_range "
            "with sysctl, or have connections reused"
        )
    return None
