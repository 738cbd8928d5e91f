"""TLS as a run was asked to use it: verified by default, with the platform's own authorities."""

from __future__ import annotations

import ssl

from perfdoctor.errors import UsageError
from perfdoctor.model import Wire


def make_context(wire: Wire) -> ssl.SSLContext:
    """UsageError when a certificate file cannot be used."""
    context = ssl.create_default_context(cafile=_readable(wire.ca_file))
    if wire.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if wire.client_cert:
        try:
            context.load_cert_chain(wire.client_cert, wire.client_key)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"the client certificate {wire.client_cert} cannot be used: {error}",
                "It must be PEM, with its key in the same file or in --client-key.",
                "check it with: openssl x509 -in FILE -noout -subject",
            ) from error
    return context


def _readable(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"the authorities in {path} cannot be used: {error}",
            "It must be a PEM file of certificates.",
            "check it with: openssl x509 -in FILE -noout -subject",
        ) from error
    return path
