"""What requests will say is checked before a target is touched or a folder made."""

import pytest

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.way import check_contents
from perfdoctor.model import Load, Prompts, Target


@pytest.fixture
def files(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"prompt": "a"}\n{"prompt": 7}\n')
    (tmp_path / "cities.csv").write_text("city\nBonn\n")
    (tmp_path / "trace.jsonl").write_text('{"at_s": 0, "prompt": "a", "city": "Bonn"}\n')
    return tmp_path


def check(files, target=None, **load):
    prompts = {
        name: f"{files}/{value}" if name == "file" else value
        for name, value in load.pop("prompts", {}).items()
    }
    if "replay" in load:
        load["replay"] = f"{files}/{load['replay']}"
    where = Target(**{"endpoint": "http://127.0.0.1:9", **(target or {})})
    check_contents(where, Load(prompts=Prompts(**prompts), **load))


BAD = {
    "row": ({"prompts": {"source": "jsonl", "file": "bad.jsonl"}}, {}, "line 2"),
    "trace": ({"replay": "bad.jsonl"}, {}, "line 1"),
    "length": ({"prompts": {"output_tokens": "many"}}, {}, "--output-tokens many"),
    "template": ({}, {"api": "http", "body": "{{city}}"}, "{{city}}"),
    "no prompt": ({"prompts": {"source": "csv", "file": "cities.csv"}}, {}, "without a prompt"),
    "tokenizer": ({"prompts": {"tokenizer": "/nowhere"}}, {}, "tokenizer.json"),
    "local model": ({}, {"endpoint": None, "model": "tiny", "api": "responses"}, "local model"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_said_is_refused(files, name):
    """With a sentence, and no socket opened."""
    load, target, words = BAD[name]
    with pytest.raises(UsageError) as found:
        check(files, target, **load)

    assert words in found.value.what


@pytest.mark.parametrize(
    ("load", "target"),
    [
        ({}, {}),
        ({}, {"endpoint": None, "model": "tiny"}),
        ({"prompts": {"source": "csv", "file": "cities.csv"}}, {"api": "http", "body": "{{city}}"}),
        ({"replay": "trace.jsonl"}, {"api": "http", "body": "{{city}}"}),
    ],
)
def test_what_can_be_said_is_not(files, load, target):
    """A template's variables may come from a table or from a trace."""
    check(files, target, **load)
