"""Prompts: reproducible, of the asked length, and sharing no prefix but the one asked for."""

import itertools
import statistics

import pytest
import tokenizers

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.prompts.synthetic import SOURCE, make_prompt
from perfdoctor.loadgen.tokens import load_counter
from perfdoctor.model import Prompts
from tests.servers import _models


def test_same_seed_and_request_give_the_same_prompt():
    """A run can be repeated word for word."""
    assert make_prompt(0, 1, 48) == make_prompt(0, 1, 48)
    assert make_prompt(0, 1, 48, 7).split()[5:] == make_prompt(0, 1, 48, 8).split()[5:]


@pytest.mark.parametrize(
    ("one", "other"),
    [((0, 1, 200), (0, 2, 200)), ((0, 1, 200), (1, 1, 200)), ((0, 1, 200, 5), (0, 1, 200, 6))],
    ids=["request", "seed", "run"],
)
def test_prompts_share_no_prefix_worth_caching(one, other):
    """Neither within a run nor between runs: the common start is shorter than three words."""
    first, second = make_prompt(*one).split(), make_prompt(*other).split()

    shared = list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))

    assert 3 > len(shared)


@pytest.mark.parametrize("words", [12, 13, 24, 48, 500, 4000])
def test_length_is_as_asked(words):
    """In words; a tokenizer makes about a third more of them."""
    assert [words] * 50 == [len(make_prompt(3, n, words).split()) for n in range(50)]


def test_a_tiny_prompt_is_still_a_question():
    """Below a dozen words only the frame is left."""
    assert 5 <= len(make_prompt(0, 1, 1).split()) <= 20


def texts(n=20, seed=0, run=1, **prompts):
    source = SOURCE(Prompts(**prompts), seed, run)
    return [source.prompt(number).messages[0][1] for number in range(1, n + 1)]


def test_lengths_follow_their_distribution():
    """Of prompts and of answers, each with its own."""
    source = SOURCE(Prompts(input_tokens="uniform(50,90)", output_tokens="uniform(5,9)"), 0, 1)
    made = [source.prompt(number) for number in range(1, 301)]
    lengths = [len(prompt.messages[0][1].split()) for prompt in made]

    assert (50, 90) == (min(lengths), max(lengths))
    assert 67 < statistics.mean(lengths) < 73
    assert set(range(5, 10)) == {prompt.output_tokens for prompt in made}


def shared(one, other):
    pairs = zip(one.split(), other.split(), strict=False)
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))


def test_a_shared_prefix_is_shared_by_all_and_no_longer_than_asked():
    """Within the length of the prompt; in another run it is another one."""
    made = texts(input_tokens=100, shared_prefix_tokens=60)

    assert {100} == {len(text.split()) for text in made}
    assert all(60 <= shared(made[0], text) <= 61 for text in made[1:])
    assert 4 >= shared(made[0], texts(1, run=2, input_tokens=100, shared_prefix_tokens=60)[0])


@pytest.mark.parametrize("shared_prefix_tokens", [-1, 48, 100])
def test_a_shared_prefix_must_leave_room(shared_prefix_tokens):
    """It is a part of the prompt."""
    with pytest.raises(UsageError, match="--shared-prefix"):
        texts(input_tokens=48, shared_prefix_tokens=shared_prefix_tokens)


def test_a_conversation_grows_by_the_answers():
    """Each turn is a prompt of its own after all that was said."""
    one = SOURCE(Prompts(input_tokens=30, turns=3), 0, 1).prompt(1)
    two = one.follow_up("Yes.")
    three = two.follow_up("No.")

    assert (1, 2, 3, None) == (one.turn, two.turn, three.turn, three.follow_up)
    assert (*one.messages, ("assistant", "Yes.")) == two.messages[:2]
    assert (*two.messages, ("assistant", "No.")) == three.messages[:4]
    assert 3 == len({text for role, text in three.messages if role == "user"})
    assert two.digest == SOURCE(Prompts(input_tokens=30, turns=3), 0, 1).prompt(1).follow_up("Yes.").digest


def test_one_turn_is_no_conversation():
    """Then no answer need be kept."""
    prompt = SOURCE(Prompts(), 0, 1).prompt(1)

    assert (None, None) == (prompt.turn, prompt.follow_up)


@pytest.mark.parametrize("shared_prefix_tokens", [0, 100])
def test_lengths_are_exact_with_a_tokenizer(shared_prefix_tokens):
    """Every one of them; a tokenizer that needs three tokens for a word as well."""
    folder = str(_models.tiny())
    count = load_counter(folder)
    made = texts(40, input_tokens=333, tokenizer=folder, shared_prefix_tokens=shared_prefix_tokens)

    assert {333} == {count(text) for text in made}


def test_lengths_are_near_where_a_tokenizers_lengths_do_not_add_up(tmp_path):
    """One without a rule for words merges across blanks: the text is made until it fits, or nearly."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=600, show_progress=False)
    tokenizer.train_from_iterator(texts(30, input_tokens=200), trainer)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    count = load_counter(str(tmp_path))

    lengths = [count(text) for text in texts(40, run=9, input_tokens=200, tokenizer=str(tmp_path))]

    assert all(abs(length - 200) <= 20 for length in lengths)
    assert 4 > statistics.mean(abs(length - 200) for length in lengths)
