"""What the answer to `/v1/models` means: a list of models, or one of the errors a user can see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from perfdoctor.errors import NotOpenai, Refused, TargetError, TlsMismatch, UnknownModel
from perfdoctor.model import Target
from perfdoctor.preflight.control import Answer, Control

PATH_OF = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}


def read_models(
    answer: Answer, control: Control, target: Target, keyed: bool
) -> tuple[Mapping[str, Any], ...]:
    """The entries of `/v1/models` that have an id. Raises for every answer that is no such list."""
    if 300 <= answer.status < 400:
        raise _redirected(answer, control.root)
    if answer.status == 404 and _has_api(control, target):
        if target.model:
            return ({"id": target.model},)
        raise UnknownModel(
            f"{control.root} does not list its models",
            "It has the API, but no /v1/models.",
            "name the model: --model NAME",
        )
    if answer.status in (401, 403, 429) or answer.status >= 500:
        raise _refused(answer, control.root, keyed)
    entries = answer.body.get("data") if isinstance(answer.body, dict) else None
    if answer.status != 200 or not isinstance(entries, list):
        raise _not_openai(answer, control.root)
    return tuple(e for e in entries if isinstance(e, dict) and isinstance(e.get("id"), str))


def _has_api(control: Control, target: Target) -> bool:
    """Whether the endpoint that will be driven exists: an empty body is refused there, but not with 404."""
    try:
        answer = control.post(PATH_OF[target.api], {})
    except TargetError:
        return False
    return answer.status not in (404, 405, 501) and not answer.is_page


def _redirected(answer: Answer, root: str) -> TargetError:
    aim = urljoin(root, answer.headers.get("location", ""))
    if root.startswith("http:") and aim.startswith("https:"):
        host = urlsplit(aim).netloc
        return TlsMismatch(
            f"{root} sends plain HTTP on to TLS", "It serves https only.", f"use --endpoint https://{host}"
        )
    return NotOpenai(
        f"{root} redirects to {aim.partition('?')[0]}", "A proxy or a login page.", "name the final address"
    )


def _refused(answer: Answer, root: str, keyed: bool) -> Refused:
    said = " ".join(answer.text.split())[:200]
    what = f"{root} answers {answer.status} to /v1/models" + (
        "" if answer.is_page or not said else f": {said}"
    )
    if answer.status in (401, 403):
        why = "The key was not accepted." if keyed else "It wants a key, and none was given."
        return Refused(what, why, "put the key into a variable and name it: --api-key-env NAME")
    if answer.status == 429:
        return Refused(what, "A rate limit is in force.", "wait, or lift the limit for this client")
    if answer.status == 503:
        return Refused(
            what, "It still loads its model, or is overloaded.", "wait until it is ready, then repeat"
        )
    return Refused(what, "The server, or the proxy before it, failed.", "read the server's own log")


def _not_openai(answer: Answer, root: str) -> NotOpenai:
    if answer.is_page:
        what = f"{root} answers with a web page"
    elif answer.status == 404:
        what = f"{root} has no /v1/models"
    elif answer.status != 200:
        what = f"{root} answers {answer.status} to /v1/models"
    else:
        said = " ".join(answer.text.split())[:200]
        what = f"{root} answers /v1/models with something else than a list of models: {said or 'nothing'}"
    return NotOpenai(
        what,
        "Another service uses this port, or the API lies under another path.",
        "name the address before /v1, for example http://host:8000/some/prefix",
    )
