"""Laws: each broken by an impossible number, kept at its bound, silent where the numbers are missing."""

from __future__ import annotations

import pytest

from perfdoctor.diagnosis.laws import violated_laws
from perfdoctor.diagnosis.measure import measure_all
from perfdoctor.diagnosis.observations import Observations
from perfdoctor.model import Load, RequestRecord, RunFacts, Sample, Scenario, Violation
from tests.factories import (
    H200,
    counters,
    facts,
    gauges,
    load_samples,
    local_target,
    parallel_requests,
    request,
    sample,
)


def broken(
    run: RunFacts, requests: list[RequestRecord] | None = None, samples: list[Sample] | None = None
) -> list[Violation]:
    obs = Observations(run, "complete", requests or [], samples or [])
    return list(violated_laws(obs, measure_all(obs)))


def laws(*args: object) -> list[str]:
    return [v.law for v in broken(*args)]  # type: ignore[arg-type]


def test_no_numbers_break_no_law() -> None:
    """An empty run and a plain one are lawful."""
    assert [] == broken(RunFacts())
    assert [] == broken(facts(), parallel_requests(140))


@pytest.mark.parametrize(("users", "expected"), [(4, []), (3, ["L1"])])
def test_little(users: int, expected: list[str]) -> None:
    """Four requests open at a time need four users."""
    assert expected == laws(facts(concurrency=users), parallel_requests(144))


def test_requests_of_an_open_loop_are_no_users() -> None:
    """What would be too many for three users breaks nothing where requests arrive at a rate."""
    open_loop = Scenario(load=Load(arrival="poisson", rate=20.0))

    assert [] == laws(facts(concurrency=3, scenario=open_loop), parallel_requests(144))


@pytest.mark.parametrize(("waiting", "expected"), [(1.0, []), (10.0, ["L1"])])
def test_foreign_load(waiting: float, expected: list[str]) -> None:
    """A server that holds far more than we sent has other users."""
    samples = gauges("engine", running=4.0, waiting=waiting)

    found = broken(facts(), parallel_requests(140), samples)

    assert expected == [v.law for v in found]
    assert all("somebody else" in v.likely for v in found)


@pytest.mark.parametrize(
    ("claimed_s", "per_s", "expected"),
    [(1.1, 3.5, []), (1.2, 3.5, ["L7"]), (776538.0, 3.5, ["L7"]), (1.2, 7.0, [])],
)
def test_a_server_takes_no_longer_than_its_client_waits(
    claimed_s: float, per_s: float, expected: list[str]
) -> None:
    """A request of 1.1 s cannot have taken the server longer; twice as many requests are also others'."""
    samples = counters("engine", e2e_count=per_s, e2e_sum_s=per_s * claimed_s)

    found = broken(facts(), parallel_requests(140), samples)

    assert expected == [v.law for v in found]
    assert all("scheduling" in v.stops for v in found)


@pytest.mark.parametrize(("tokens_s", "expected"), [(0.001, []), (0.0001, ["L2"])])
def test_bandwidth_of_a_gpu(tokens_s: float, expected: list[str]) -> None:
    """1 GB every 0.1 ms would be 10 TB/s on a card of 4.8."""
    run = facts(concurrency=1, target=local_target("cuda:0"), gpus=(H200,))

    found = broken(run, [request(sent_s=21.0, decode_s=10 * tokens_s)])

    assert expected == [v.law for v in found]
    assert all(("memory-bandwidth", "launch-overhead") == v.stops for v in found)


@pytest.mark.parametrize(
    ("step_bytes", "copy", "expected"), [(10**9, 7e9, []), (10**9, 6e9, ["L2"]), (10**7, 6e7, [])]
)
def test_bandwidth_of_a_cpu(step_bytes: int, copy: float, expected: list[str]) -> None:
    """10 GB/s against 1.5 times the copy; weights that fit in caches may outrun memory."""
    run = facts(
        concurrency=1,
        target=local_target(step_bytes=step_bytes, weights_bytes=None),
        calibration={"copy_bytes_per_s": copy},
    )

    assert expected == laws(run, [request(sent_s=21.0)])


@pytest.mark.parametrize(("used", "expected"), [(1.0e9, []), (0.9e9, ["L3"])])
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_weights_need_room(device: str, used: float, expected: list[str]) -> None:
    """1 GB of weights cannot sit in less."""
    samples = (
        gauges("memory", rss_bytes=used)
        if device == "cpu"
        else gauges("gpu", labels={"gpu": "0"}, mem_used_bytes=used)
    )

    assert expected == laws(facts(target=local_target(device), gpus=(H200,)), [], samples)


@pytest.mark.parametrize(("tokens", "expected"), [(4e6, []), (6e6, ["L4"])])
def test_a_cache_fits_into_its_device(tokens: float, expected: list[str]) -> None:
    """28 KiB a token: four million are 115 GB of an H200's 141, six million are not there."""
    target = local_target("cuda:0", weights_bytes=None, kv_bytes_per_token=28_672)
    start = sample("log.start", 0.0, kv_tokens=tokens)

    assert expected == laws(facts(target=target, gpus=(H200,)), [], [start])


@pytest.mark.parametrize(
    ("queue", "expected"),
    [(1.16, []), (2.1, []), (309.4, ["L5"]), (0.001, ["L5"])],
)
def test_littles_law_at_a_disk(queue: float, expected: list[str]) -> None:
    """6,047 reads of 0.16 ms and 112 writes of 1.72 ms keep 1.16 requests open."""
    rates = {"reads_per_s": 6047.0, "r_await_s": 0.16e-3, "writes_per_s": 112.0, "w_await_s": 1.72e-3}

    assert expected == laws(facts(), [], gauges("disk", **rates, aqu_sz=queue))


def test_a_disk_whose_queue_nobody_printed_is_not_judged() -> None:
    """Counters of our own probe hold no rates."""
    assert [] == laws(facts(), [], gauges("disk", reads_per_s=6047.0, r_await_s=9.0))


@pytest.mark.parametrize(("read", "expected"), [(0.5e9, []), (0.4e9, ["L6"]), (0.0, [])])
def test_cold_file_was_read(read: float, expected: list[str]) -> None:
    """A cold file of 1 GB must have been fetched; nothing at all is a file system that does not count."""
    samples = load_samples(import_=2.0, weights=8.0)
    samples += [sample("io", t, process_read_bytes=b) for t, b in ((0.0, 0.0), (10.0, read))]

    assert expected == laws(facts(target=local_target()), [], samples)


@pytest.mark.parametrize(("name", "busy", "expected"), [
    ("device_s", 0.1, []), ("device_s", 0.11, ["L7"]), ("kernel_s", 0.11, ["L7"]),
])  # fmt: skip
def test_device_time_fits_into_the_step(name: str, busy: float, expected: list[str]) -> None:
    """The union of kernels cannot outlast the profiled step."""
    step = sample("step", 70.0, wall_s=0.2, profiled_wall_s=0.1, **{name: busy})

    assert expected == laws(facts(target=local_target(weights_bytes=None)), [], [step])
