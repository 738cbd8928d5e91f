"""Files of prompts: what is read, and what is refused with file and line."""

import csv
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.prompts._detect import detect
from perfdoctor.loadgen.prompts._files import read_text
from perfdoctor.model import Prompts
from perfdoctor.registry import load_member, member_ids

PACKAGE = "perfdoctor.loadgen.prompts"


@pytest.fixture
def source(tmp_path):
    """Makes a source from a file's content, by what it is."""

    def make(content, kind=None, **prompts):
        path = tmp_path / "prompts.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        made = load_member(PACKAGE, kind or detect(path), "SOURCE")[0]
        return made(Prompts(file=str(path), **prompts), 0, 1)

    return make


def lines(*rows):
    return "\n".join(json.dumps(row) for row in rows)


def first(source):
    return source.prompt(1)


def test_sources_are_discovered():
    """A source is a file."""
    assert ("csv", "jsonl", "sharegpt", "synthetic") == member_ids(PACKAGE)


@pytest.mark.parametrize(
    ("row", "messages"),
    [
        ({"prompt": "Hello"}, [("user", "Hello")]),
        ({"text": "Hello"}, [("user", "Hello")]),
        ({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]},
         [("system", "Be brief."), ("user", "Hi")]),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}, [("user", "Hi")]),
        ({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]},
         [("user", "Hi")]),
        ({"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]},
         [("user", "Hi")]),
    ],
)  # fmt: skip
def test_rows_of_jsonl_become_messages(source, row, messages):
    """An answer at the end of a row is what the model is to say itself."""
    assert messages == list(first(source(lines(row))).messages)


@pytest.mark.parametrize(
    ("row", "tokens"),
    [({}, 48), ({"max_tokens": 7}, 7), ({"output_tokens": 9}, 9), ({"max_completion_tokens": "5"}, 5)],
)
def test_a_row_may_bring_the_limit_of_its_answer(source, row, tokens):
    """Else the load's holds."""
    assert tokens == first(source(lines({"prompt": "Hi", **row}))).output_tokens


def test_other_members_are_variables(source):
    """Those of every row can stand in a template; what is no text is JSON."""
    made = source(lines({"prompt": "Hi", "city": "Bonn", "n": 3}, {"prompt": "Ho", "city": "Ulm"}))

    assert ("city", "prompt") == made.variables
    assert {"prompt": "Hi", "city": "Bonn", "n": "3"} == first(made).variables


def test_rows_of_variables_alone_are_no_prompts(source):
    """They go with --api http only."""
    assert [False, True] == [source(lines({key: "a"})).speaks for key in ("city", "prompt")]


def test_a_file_begins_again_when_it_is_used_up(source):
    """In its order, from number 1 on; equal prompts have equal digests."""
    made = source(lines({"prompt": "a"}, {"prompt": "b"}, {"prompt": "c"}))

    assert 3 == made.count
    assert list("abcab") == [made.prompt(n).messages[0][1] for n in range(1, 6)]
    assert made.prompt(1).digest == made.prompt(4).digest != made.prompt(2).digest


CONVERSATION = [
    {"from": "system", "value": "Be brief."},
    {"from": "human", "value": "One?"},
    {"from": "gpt", "value": "not sent"},
    {"from": "human", "value": "Two?"},
    {"from": "gpt", "value": "not sent"},
]


@pytest.mark.parametrize(
    "content", [json.dumps([{"conversations": CONVERSATION}]), lines({"conversations": CONVERSATION})]
)
def test_a_conversation_goes_on_with_the_servers_own_answers(source, content):
    """The file's answers would be another conversation."""
    one = first(source(content, output_tokens=5))
    two = one.follow_up("Yes.")

    assert [("system", "Be brief."), ("user", "One?")] == list(one.messages)
    assert [*one.messages, ("assistant", "Yes."), ("user", "Two?")] == list(two.messages)
    assert (1, 2, None, 5) == (one.turn, two.turn, two.follow_up, two.output_tokens)


def test_sharegpt_leaves_out_conversations_without_a_question(source):
    """The well-known files have hundreds of them."""
    silent = [{"id": "a", "conversations": []}, {"conversations": [{"from": "gpt", "value": "Ho"}]}]
    made = source(json.dumps([*silent, {"conversations": CONVERSATION}]))

    assert 1 == made.count


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_is_read_as_it_is_quoted(source, separator, end):
    """Line breaks and quotes inside a cell; any of three separators."""
    rows = [["prompt", "max_tokens", "city"], ['"say ""hi""\nor not"', "7", "Bonn"], ["Hello", "", "Ulm"], []]
    made = source(end.join(separator.join(row) for row in rows))

    assert [('say "hi"\nor not', 7), ("Hello", 48)] == [
        (made.prompt(n).messages[0][1], made.prompt(n).output_tokens) for n in (1, 2)
    ]
    assert ("city", "max_tokens", "prompt") == made.variables


def test_a_long_cell_is_no_error(source):
    """The limit of the csv module is below long prompts, and stays as it was for others."""
    limit = csv.field_size_limit()

    assert 200_000 == len(first(source("prompt\n" + "a" * 200_000)).messages[0][1])
    assert limit == csv.field_size_limit()


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.encode() + b"\n\n  \n",
    ],
    ids=["byte order mark", "utf-16", "crlf", "blank lines"],
)
def test_what_editors_leave_in_files_does_not_matter(source, encode):
    """The first prompt is as it was written."""
    made = source(encode('{"prompt": "Ääh\\u2028"}\n{"prompt": "b"}'))

    assert (2, "Ääh\u2028") == (made.count, first(made).messages[0][1])


BAD = {
    "empty": (b"", "is empty"),
    "blank": (b" \n \r\n", "is empty"),
    "binary": (b"ab\0cd", "no text"),
    "packed": (b"\x1f\x8b\x08rest", "packed"),
    "latin-1": ('{"prompt": "a"}\n{"prompt": "Ä"}'.encode("latin-1"), "line 2 .* UTF-8"),
    "half a line": (b'{"prompt": "a"}\n{"prompt": "b', "line 2 "),
    "no object": (b'{"prompt": "a"}\n\n7', "line 3 "),
    "no text": (b'{"prompt": 7}', "line 1 "),
    "empty text": (b'{"prompt": " "}', "line 1 "),
    "no question": (b'{"messages": [{"role": "assistant", "content": "a"}]}', "line 1 .*question"),
    "no role": (b'{"messages": [{"content": "a"}]}', "line 1 .*role"),
    "no user": (b'{"conversations": [{"from": "gpt", "value": "a"}]}', "line 1 .*user"),
    "no limit": (b'{"prompt": "a", "max_tokens": 0}', "line 1 .*max_tokens"),
    "nested": (b'{"prompt": ' + b"[" * 5000 + b"]" * 5000 + b"}", "line 1 "),
    "half a list": (b'[{"prompt": "a"}', "no JSON list"),
    "item": (b'[{"prompt": "a"}, 7]', "item 2 "),
    "only silence": (b'[{"conversations": []}]', "no row"),
    "ragged": (b"prompt,city\na,b\nc", "line 3 .*cells"),
    "header only": (b"prompt,city\n", "no row"),
    "same column": (b"prompt,prompt\na,b", "twice"),
    "open quote": (b'prompt,city\n"a,b\n', "line"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_its_place(source, name):
    """And with what to do."""
    content, words = BAD[name]
    with pytest.raises(UsageError) as found:
        source(content)

    assert re.search(words, f"{found.value.what} {found.value.why}", re.DOTALL)
    assert "prompts.txt" in found.value.what and found.value.do


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name):
    """It is missing, or a folder."""
    with pytest.raises(UsageError, match="cannot read"):
        read_text(tmp_path / name)


def test_a_gigantic_file_is_refused_unread(tmp_path):
    """It would not fit into memory several times over."""
    path = tmp_path / "big.jsonl"
    with path.open("wb") as sparse:
        sparse.truncate(2**31)

    with pytest.raises(UsageError, match="larger than 1 GiB"):
        read_text(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=60),
        st.text(st.sampled_from('{}[]",:\n\r\t; aé\ufeff\u2028prompt7'), max_size=60).map(str.encode),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["prompt", "messages", "conversations", "max_tokens"]), inner
                )
            ),
            max_leaves=8,
        ).map(lambda value: json.dumps(value).encode()),
    ),
    st.sampled_from([None, "jsonl", "csv", "sharegpt"]),
)
def test_any_bytes_are_prompts_or_a_usage_error(source, content, kind):
    """Nothing else reaches the user; what is read can be sent."""
    try:
        made = source(content, kind)
    except UsageError:
        return
    prompt = made.prompt(made.count)
    assert prompt.output_tokens >= 1
    assert all(isinstance(part, str) for message in prompt.messages for part in message)
