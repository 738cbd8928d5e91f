"""The server's own metrics under common names, from pages as real servers write them."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest

from perfdoctor.probes import _engine_table, engine
from perfdoctor.probes._buckets import bucket_names, read_buckets
from perfdoctor.probes._probe import NotYet, Unavailable
from perfdoctor.probes._subject import Subject

TABLES = _engine_table.load_tables()
NAMES = _engine_table.sample_names(TABLES)

VLLM = b"""\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a b{c"} 3.0
vllm:num_requests_running{engine="1",model_name="a"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="a"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="a"} 0.75
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{engine="0",model_name="a"} 1.2e+03
vllm:generation_tokens_created{engine="0",model_name="a"} 1.7e+09
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3",model_name="a"} 4.0
vllm:request_queue_time_seconds_sum{engine="0",model_name="a"} 6.5
vllm:request_queue_time_seconds_count{engine="0",model_name="a"} 4.0
vllm:num_requests_waiting{engine="0",model_name="a"} NaN
python_gc_objects_collected_total{generation="0"} 1.0
"""
LLAMA = b"""\
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 5
llamacpp:tokens_predicted_total 90
"""


def values(page: bytes, name: str) -> dict[str, float | None]:
    return _engine_table.normalise(
        _engine_table.parse_page(_engine_table.wanted_lines(page, NAMES)), TABLES[name].aliases
    )


def test_only_wanted_samples_reach_the_parser():
    """Buckets, comments and foreign metrics stay outside."""
    kept = _engine_table.wanted_lines(VLLM, NAMES)

    assert 8 == kept.count("\n")
    assert "bucket" not in kept
    assert "#" not in kept


def test_label_sets_are_added_up_and_the_fullest_cache_counts():
    """Two engines behind one page: 5 requests, but a cache that is three quarters full."""
    found = values(VLLM, "vllm")

    assert (5.0, 0.75, 1200.0) == (found["running"], found["kv_usage"], found["output_tokens"])
    assert (6.5, 4.0) == (found["queue_sum_s"], found["queue_count"])


def test_absent_and_nan_are_missing_not_zero():
    """`preemptions` is not on the page, `waiting` is no number."""
    found = values(VLLM, "vllm")

    assert found["preemptions"] is None
    assert found["waiting"] is None


def test_the_first_known_name_wins():
    """A renamed metric: the new name is preferred, the old one still reads."""
    aliases = {"kv": ["new", "old"]}

    assert {"kv": 1.0} == _engine_table.normalise(_engine_table.parse_page("new 1\nold 2\n"), aliases)
    assert {"kv": 2.0} == _engine_table.normalise(_engine_table.parse_page("old 2\n"), aliases)


@pytest.mark.parametrize(("page", "expected"), [(VLLM, "vllm"), (LLAMA, "llama.cpp"), (b"up 1\n", None)])
def test_the_engine_is_known_by_its_names(page, expected):
    """A page of something else is no engine's."""
    assert expected == _engine_table.best_engine(
        _engine_table.parse_page(_engine_table.wanted_lines(page, NAMES)), TABLES
    )


@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"])
def test_metrics_stand_beside_v1(url):
    """Whatever form the base address has."""
    assert "http://h:1/metrics" == _engine_table.metrics_url(url)


def test_every_normalised_name_has_a_metric():
    """The tables may not use a name that run.json does not explain."""
    known = {m.name for m in engine.METRICS}
    absent = {name for table in TABLES.values() for names in table.absent.values() for name in names}

    assert set() == absent - known
    assert set() == {name for table in TABLES.values() for name in table.aliases} - known


class Server(http.server.BaseHTTPRequestHandler):
    answers: tuple[int, bytes] = (200, b"")
    asked = ""

    def do_GET(self) -> None:
        type(self).asked = self.path
        status, body = self.answers
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@pytest.fixture
def server() -> Iterator[tuple[str, type[Server]]]:
    handler = type("Handler", (Server,), {})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}/v1", handler
        running.shutdown()
        thread.join()


def reader(url: str | None, name: str = "unknown") -> engine.EngineReader:
    return engine.EngineReader(Subject(url=url, engine=name), TABLES)


def test_a_page_is_fetched_and_normalised(server):
    """Through a real connection; the engine need not be told. Buckets come with every reading."""
    url, handler = server
    handler.answers = (200, VLLM)
    reading = reader(url)

    first, buckets = reading.read()
    second, again = reading.read()
    reading.close()

    assert 5.0 == first.values["running"] == second.values["running"]
    assert ("engine.bucket", {"histogram": "queue"}, {"0.3": 4.0}) == (
        buckets.probe, buckets.labels, buckets.values,
    )  # fmt: skip
    assert buckets == again


@pytest.mark.parametrize(
    ("status", "expected", "enable"),
    [(404, "absent", "--metrics"), (501, "absent", "--metrics"), (401, "denied", "without a key")],
)
def test_a_refused_page_ends_the_probe(server, status, expected, enable):
    """llama.cpp answers 501 unless it was started with --metrics."""
    url, handler = server
    handler.answers = (status, b"no")
    reading = reader(url, "llama.cpp")

    with pytest.raises(Unavailable) as caught:
        reading.read()
    reading.close()

    assert expected == caught.value.status
    assert enable in (caught.value.enable or "")


def test_a_page_of_something_else_is_waited_for(server):
    """A web page, or a server that has not counted anything yet."""
    url, handler = server
    handler.answers = (200, b"<!doctype html><p>hello")
    reading = reader(url)

    with pytest.raises(NotYet) as caught:
        reading.read()
    reading.close()

    assert "no name that is known" in caught.value.why


@pytest.mark.parametrize(
    ("name", "why", "enable"),
    [
        ("ollama", "ollama exports no metrics", "--log FILE"),
        ("transformers-serve", "transformers serve exports no metrics", ""),
        ("something", "answered 404", ""),
    ],
)
def test_an_engine_without_metrics_says_so(server, name, why, enable):
    """Its reason and what it offers instead, not just a status."""
    url, handler = server
    handler.answers = (404, b"no")
    reading = reader(url, name)

    with pytest.raises(Unavailable) as caught:
        reading.read()
    reading.close()

    assert why in caught.value.why
    assert enable in (caught.value.enable or "")


def test_an_engine_may_have_its_page_elsewhere(server):
    """trtllm-serve answers JSON at /metrics."""
    url, handler = server
    handler.answers = (200, b"trtllm_num_requests_running 4\n")
    reading = reader(url, "tensorrt-llm")

    (first,) = reading.read()
    reading.close()

    assert 4.0 == first.values["running"]
    assert "/prometheus/metrics" == handler.asked


def test_what_the_page_lacks_has_its_reason(server):
    """By the engine's table, else by this version's page; what was seen once is no gap."""
    url, handler = server
    handler.answers = (200, LLAMA)
    reading = reader(url)
    before = reading.gaps

    reading.read()
    reading.close()
    gaps = {gap.metric: gap.why for gap in reading.gaps}

    assert () == tuple(before)
    assert "a request keeps its slot to its end: nothing is preempted" == gaps["preemptions"]
    assert "this version's page has no llamacpp:kv_cache_usage_ratio" == gaps["kv_usage"]
    assert "it exports no histograms" == gaps["bucket"]
    assert not {"waiting", "output_tokens"} & gaps.keys()


def test_without_an_address_there_is_nothing_to_ask():
    """A local model that is still loading."""
    with pytest.raises(NotYet):
        reader(None).read()


def test_buckets_are_added_up_by_edge_and_named_as_ours():
    """Two engines; the histogram is known by its sum's name."""
    page = (
        'vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1"} 3\n'
        'vllm:time_to_first_token_seconds_bucket{engine="1",le="0.1"} 4\n'
        'vllm:time_to_first_token_seconds_bucket{engine="1",le="+Inf"} 9\n'
    )
    names = bucket_names(TABLES["vllm"].aliases)

    assert {"ttft": {"0.1": 7.0, "+Inf": 9.0}} == read_buckets(page, names)


def test_edges_are_in_seconds():
    """Whatever the unit of the histogram's name."""
    page = (
        'nv_inference_first_response_histogram_ms_bucket{model="m",le="100"} 3\n'
        'nv_inference_first_response_histogram_ms_bucket{model="m",le="2500"} 5\n'
        'nv_inference_first_response_histogram_ms_bucket{model="m",le="+Inf"} 9\n'
    )

    assert {"ttft": {"0.1": 3.0, "2.5": 5.0, "+Inf": 9.0}} == read_buckets(
        page, bucket_names(TABLES["triton"].aliases)
    )


def test_every_histogram_with_a_sum_has_buckets():
    """llama.cpp's sums are counters without buckets: their names do not end like a histogram's."""
    assert {"queue", "prefill", "decode", "ttft", "e2e", "itl"} == set(bucket_names(TABLES["vllm"].aliases))
    assert {} == bucket_names(TABLES["llama.cpp"].aliases)
