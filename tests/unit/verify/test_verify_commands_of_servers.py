"""Commands of servers: their port, their environment, their secrets."""

from __future__ import annotations

import pytest

from perfdoctor.errors import UsageError
from perfdoctor.verify._command import parse


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("vllm serve m --port 8001", 8001),
        ("vllm serve m --port=8001", 8001),
        ("llama-server -m it.gguf -p 8002", 8002),
        ("vllm serve m --port {port}", None),
        ("server --listen 127.0.0.1:{port}", None),
        ("python -m sglang.launch_server --model-path m", 9000),  # by --port of ours
        ("vllm serve m --port 8001 --model x", 8001),
    ],
)
def test_the_port_of_a_command(text: str, port: int | None):
    """As it shows it, a free one for the placeholder, or the one that was told."""
    assert port == parse(text, "before", 9000).port


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("vllm serve m", "the port of --before is not known"),
        ("vllm serve m --port auto", "the port of --before is not known"),
        ("vllm serve 'm --port 1", "--before is no command"),
        ("", "--before names no program"),
        ("A=1", "--before names no program"),
    ],
)
def test_what_cannot_be_started(text: str, phrase: str):
    """Said before anything is."""
    with pytest.raises(UsageError) as caught:
        parse(text, "before")

    assert phrase in caught.value.what
    assert caught.value.do


def test_variables_before_the_program_are_its_environment():
    """As a shell has it; nothing goes through a shell."""
    found = parse("OMP_NUM_THREADS=2 HF_TOKEN='a b' serve --port 1 X=2", "after")

    assert {"OMP_NUM_THREADS": "2", "HF_TOKEN": "a b"} == found.environment
    assert ("serve", "--port", "1", "X=2") == found.words


@pytest.mark.parametrize(
    "text",
    [
        "serve --port 1 --api-key sk-12345678",
        "serve --port 1 --api-key=sk-12345678",
        "HF_TOKEN=sk-12345678 serve --port 1",
        "serve --port 1 --admin-password sk-12345678",
    ],
)
def test_keys_are_not_shown(text: str):
    """Known by the names of their flags and variables."""
    found = parse(text, "before")

    assert ("sk-12345678",) == found.secrets
    assert "sk-12345678" not in found.text
    assert "[redacted]" in found.text


def test_words_that_only_sound_like_keys_stay():
    """Counts of tokens are no secrets."""
    found = parse("serve --port 1 --max-num-batched-tokens 8192 --tokenizer ./t", "before")

    assert () == found.secrets
