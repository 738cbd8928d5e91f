"""What passes between the HTTP side and the engine: a request in, pieces and one ending out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perfdoctor.local.text import Kind

DEFAULT_MAX_TOKENS = 256
SETTINGS_PATH = "/perfdoctor/settings"  # POST the switches from the next request on, as a JSON object


@dataclass(frozen=True, slots=True)
class Request:
    """What to generate. `messages` are (role, text) turns; None: `prompt` is continued as it stands."""

    id: str
    messages: tuple[tuple[str, str], ...] | None = None
    prompt: str = ""
    thinking: bool | None = None  # None: as the chat template has it
    stream: bool = False
    include_usage: bool = False
    max_tokens: int = DEFAULT_MAX_TOKENS
    temperature: float | None = None  # None: the checkpoint's own setting; 0: greedy
    top_p: float | None = None
    seed: int | None = None
    ignore_eos: bool = False
    profile_steps: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """One generated token. `text` is "" for a marker and while a character is incomplete."""

    text: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Done:
    reason: str  # "stop" or "length"
    prompt_tokens: int
    output_tokens: int  # pieces delivered; the end-of-turn token is not one


@dataclass(frozen=True, slots=True)
class Broken:
    """No answer, or an answer that ended early. `code` is None when the fault is the server's."""

    message: str
    code: str | None = None


Deliver = Callable[[Piece | Done | Broken], None]
