"""The real child process on the tiny model: its API, its queue, its telemetry, its end."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from perfdoctor.clock import Clock
from perfdoctor.local import tiny
from perfdoctor.local.launch import LocalServer, launch
from perfdoctor.model import Sample, TargetFacts

pytestmark = pytest.mark.server

HI = [{"role": "user", "content": "What is a list?"}]
PHASES = ["prepare", "import", "tokenizer", "weights", "to_device", "first_forward", "total"]


@dataclass
class Child:
    """A running server with all it has told."""

    samples: list[Sample] = field(default_factory=list)
    facts: list[TargetFacts] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    server: LocalServer | None = None

    def start(self, model: str) -> None:
        self.server = launch(
            model, Clock(), self.samples.append, self.log.append,
            on_spawn=self.pids.append, on_facts=self.facts.append, timeout_s=120, device="cpu",
        )  # fmt: skip

    def post(self, path: str = "/v1/chat/completions", **body: Any) -> httpx.Response:
        headers = body.pop("headers", {})
        return httpx.post(self.server.url + path, json={"messages": HI} | body, headers=headers, timeout=60)

    def told(self, probe: str, **labels: str) -> list[Sample]:
        """Samples of a probe, awaited: the pipe is a little behind the answer."""
        for _ in range(100):
            found = [s for s in self.samples if s.probe == probe and labels.items() <= s.labels.items()]
            if found:
                return found
            time.sleep(0.02)
        return []


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """Started once; the tiny model is made on the way, as on a user's first run."""
    child = Child()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        child.start("tiny")
        yield child
    child.server.stop()


def events(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert "[DONE]" == lines[-1]
    return [json.loads(line) for line in lines[:-1]]


def deltas(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the events that stand for a token: not the role, not the finish, not the usage."""
    return [e["choices"][0]["delta"] for e in found[1:] if e["choices"] and e["choices"][0]["delta"]]


def test_a_stream_reasons_answers_stops_and_counts(child: Child):
    """Sampled as the checkpoint wants, it ends by itself; usage equals the chunks."""
    found = events(child.post(stream=True, stream_options={"include_usage": True}, max_tokens=2000, seed=1))

    kinds = [next(iter(delta)) for delta in deltas(found)]
    answer_at = kinds.index("content")
    assert {"role": "assistant", "content": ""} == found[0]["choices"][0]["delta"]
    assert answer_at > 0
    assert {"reasoning_content"} == set(kinds[:answer_at])
    assert {"content"} == set(kinds[answer_at:])
    assert "stop" == found[-2]["choices"][0]["finish_reason"]
    assert [] == found[-1]["choices"]
    assert len(kinds) == found[-1]["usage"]["completion_tokens"]


def test_the_same_seed_gives_the_same_answer(child: Child):
    """Streamed or whole; another seed another answer; the markers are in neither field."""
    whole = child.post(seed=5, max_tokens=300).json()["choices"][0]["message"]
    parts = deltas(events(child.post(seed=5, max_tokens=300, stream=True)))
    other = child.post(seed=6, max_tokens=300).json()["choices"][0]["message"]

    assert whole["content"] == "".join(part.get("content", "") for part in parts)
    assert whole["reasoning_content"] == "".join(part.get("reasoning_content", "") for part in parts)
    assert other != whole
    assert "think>" not in whole["content"] + whole["reasoning_content"]


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_length_is_limited(child: Child, name: str):
    """Exactly, even where the end of turn would have come."""
    answer = child.post(**{name: 40}, ignore_eos=True).json()

    assert "length" == answer["choices"][0]["finish_reason"]
    assert 40 == answer["usage"]["completion_tokens"]


def test_greedy_is_repeatable(child: Child):
    """Temperature 0 leaves nothing to chance, whatever the checkpoint's default."""
    texts = {child.post(temperature=0, max_tokens=12).text.split('"choices"')[1] for _ in range(2)}

    assert 1 == len(texts)


def test_thinking_can_be_switched_off(child: Child):
    """Then every token is answer."""
    answer = child.post(chat_template_kwargs={"enable_thinking": False}, max_tokens=8, ignore_eos=True).json()

    message = answer["choices"][0]["message"]
    assert message["reasoning_content"] is None
    assert message["content"]


def test_a_plain_completion_streams_text(child: Child):
    """The other endpoint: `text`, one event a token, and no role."""
    found = events(child.post("/v1/completions", prompt="A list is", stream=True, max_tokens=5))

    assert 6 == len(found)
    assert all("text" in event["choices"][0] for event in found)
    assert "length" == found[-1]["choices"][0]["finish_reason"]


def test_health_and_models(child: Child):
    """What a client asks first."""
    url = child.server.url

    assert {"status": "ok"} == httpx.get(url + "/health").json()
    assert ["tiny"] == [model["id"] for model in httpx.get(url + "/v1/models").json()["data"]]


def test_an_unknown_model_is_404_and_bad_json_400(child: Child):
    """In OpenAI's words."""
    unknown = child.post(model="gpt-4")
    broken = httpx.post(child.server.url + "/v1/chat/completions", content=b"{")

    assert (404, "model_not_found") == (unknown.status_code, unknown.json()["error"]["code"])
    assert (400, "invalid_request_error") == (broken.status_code, broken.json()["error"]["type"])


def test_a_prompt_past_the_context_is_refused(child: Child):
    """8,192 tokens are all this model has; the message names both numbers."""
    answer = child.post("/v1/completions", prompt="list " * 9000)

    assert (400, "context_length_exceeded") == (answer.status_code, answer.json()["error"]["code"])


def test_requests_are_served_one_at_a_time_in_order(child: Child):
    """Of four at once, each starts only when the one before it is done."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(
            lambda n: child.post(max_tokens=30, ignore_eos=True, headers={"X-Request-Id": f"q{n}"}), range(4)
        ))  # fmt: skip

    served = sorted(
        (child.told("serve", request=f"q{n}")[0].values for n in range(4)), key=lambda v: v["started_s"]
    )
    assert all(before["done_s"] <= after["started_s"] for before, after in itertools.pairwise(served))
    assert served == sorted(served, key=lambda v: v["arrived_s"])


def test_a_served_request_tells_its_instants(child: Child):
    """Under the client's own id, in order, with its counts."""
    child.post(max_tokens=4, ignore_eos=True, headers={"X-Request-Id": "me"})

    (sample,) = child.told("serve", request="me")
    values = sample.values
    order = ["arrived_s", "started_s", "tokenised_s", "first_token_s", "last_token_s", "done_s"]
    assert sorted(values[name] for name in order) == [values[name] for name in order]
    assert 4 == values["output_tokens"]
    assert values["prompt_tokens"] > 4


def test_a_profiled_request_tells_what_a_step_does(child: Child):
    """On a CPU: operators and time inside arithmetic; the true step is no longer than the profiled one."""
    child.post(max_tokens=1, headers={"X-Perfdoctor-Profile": "4"})

    (sample,) = child.told("step")
    assert 4 == sample.values["steps"]
    assert sample.values["ops"] > 100
    assert 0 < sample.values["kernel_s"] < sample.values["profiled_wall_s"]
    assert sample.values["device_s"] is None


def test_a_client_that_leaves_frees_the_server(child: Child):
    """A generation of thousands of tokens ends within a step or two, and so does one that still waits."""
    url = child.server.url + "/v1/chat/completions"
    body = {"messages": HI, "stream": True, "max_tokens": 7000, "ignore_eos": True}
    with httpx.stream("POST", url, json=body, headers={"X-Request-Id": "left"}) as running:
        lines = running.iter_lines()
        for _ in range(4):
            next(lines)
        with httpx.stream("POST", url, json=body, headers={"X-Request-Id": "waited"}):
            pass  # leaves while it is queued

    after = child.post(max_tokens=1, headers={"X-Request-Id": "next"})

    assert 200 == after.status_code
    assert child.told("serve", request="left")[0].values["output_tokens"] < 3000
    assert [] == [s for s in child.samples if s.labels.get("request") == "waited"]


def test_loading_is_told_phase_by_phase(child: Child):
    """In order, each from where it began; the total leaves out the making of the model."""
    loads = child.told("load")

    assert PHASES == [sample.labels["phase"] for sample in loads]
    seconds = {sample.labels["phase"]: sample.values["seconds"] for sample in loads}
    started = [sample.values["started_s"] for sample in loads[:-1]]
    assert sorted(started) == started
    assert seconds["total"] >= sum(seconds[name] for name in PHASES[1:-1])
    assert seconds["prepare"] > 0.1


def test_the_model_file_is_known_before_it_is_read(child: Child):
    """The first facts come with path and size but without sizes in memory."""
    (early,) = child.facts
    weights = Path(early.model_path) / "model.safetensors"

    assert weights.stat().st_size == early.file_bytes
    assert early.parameters is None


def test_facts_are_complete_once_ready(child: Child):
    """What the roofline needs, and what the child is."""
    facts = child.server.facts

    assert [child.server.pid, facts.pid] == child.pids * 2
    assert ("cpu", "bfloat16", 2_164_736) == (facts.device, facts.dtype, facts.parameters)
    assert (2 * 2_164_736, 2 * (2_164_736 - 2048 * 256)) == (facts.weights_bytes, facts.step_bytes)
    assert (1, False, "perfdoctor-local") == (facts.max_batch, facts.weights_random, facts.engine)
    assert "transformers" in facts.engine_version and "torch" in facts.engine_version
    assert "absent" == child.told("torch")[0].status


def test_stopping_is_final_and_repeatable(tiny_cache: Path):
    """SIGTERM ends it; a second stop finds nothing to do."""
    child = Child()
    child.start("tiny")

    child.server.stop()
    child.server.stop()

    assert not child.server.alive()
    with pytest.raises(ProcessLookupError):
        os.kill(child.server.pid, 0)


def test_the_child_dies_with_its_parent(tiny_cache: Path):
    """Also when the parent is killed without a chance to clean up."""
    script = (
        "import time; from perfdoctor.clock import Clock; from perfdoctor.local.launch import launch\n"
        "launch('tiny', Clock(), lambda s: None, lambda l: None, on_spawn=lambda p: print(p, flush=True))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())

    parent.send_signal(signal.SIGKILL)
    parent.communicate()

    assert gone(pid)


def gone(pid: int) -> bool:
    for _ in range(250):
        if not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def tiny_cache(child: Child) -> Path:
    """The cache that `child` has filled stays set for the whole module."""
    return tiny.cache_folder("tiny")


def test_other_switches_from_the_next_request_on(child: Child):
    """The same greedy answers with a static cache and without, in one process; a wrong one is refused."""
    ask = {"max_tokens": 12, "temperature": 0, "ignore_eos": True}
    settings = f"{child.server.url}/perfdoctor/settings"
    expected = child.post(**ask).json()["choices"]

    changed = httpx.post(settings, json={"cache": "static"}, timeout=60)
    found = child.post(**ask).json()["choices"]
    refused = httpx.post(settings, json={"cache": "sttic"}, timeout=60)
    again = child.post(**ask).json()["choices"]
    back = httpx.post(settings, json={}, timeout=60)

    assert (200, {"compile_s": 0.0}) == (changed.status_code, changed.json())
    assert expected == found == again
    assert (409, "'sttic' is no value of the setting 'cache'") == (
        refused.status_code,
        refused.json()["what"],
    )
    assert 200 == back.status_code
