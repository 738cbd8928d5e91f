"""Laws: each broken by an impossible number, kept at its bound, silent where the numbers are missing."""

from __future__ import annotations

import pytest

from perfdoctor.diagnosis.laws import LAWS, check, promises
from perfdoctor.diagnosis.measure import measure_all
from perfdoctor.diagnosis.observations import Observations
from perfdoctor.model import (
    Finding,
    FixOffer,
    GpuFacts,
    LawState,
    Load,
    RequestRecord,
    RunFacts,
    Sample,
    Scenario,
    Violation,
)
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
    return list(checked(run, requests, samples)[1])


def checked(
    run: RunFacts, requests: list[RequestRecord] | None = None, samples: list[Sample] | None = None
) -> tuple[tuple[LawState, ...], tuple[Violation, ...]]:
    obs = Observations(run, "complete", requests or [], samples or [])
    return check(obs, measure_all(obs))


def why_untested(name: str, says: str, *args: object) -> str:
    """The reason of the law whose sentence has these words; empty when it was tested."""
    (state,) = [s for s in checked(*args)[0] if s.law == name and says in s.says]  # type: ignore[arg-type]
    assert (state.status == "unknown") == bool(state.reason)
    return state.reason


def laws(*args: object) -> list[str]:
    return [v.law for v in broken(*args)]  # type: ignore[arg-type]


def test_no_numbers_break_no_law() -> None:
    """An empty run and a plain one are lawful."""
    assert [] == broken(RunFacts())
    assert [] == broken(facts(), parallel_requests(140))


def test_what_cannot_be_tested_says_why() -> None:
    """Of an empty run no law holds: each is unknown, with its reason, and every one has its page."""
    states, _ = checked(RunFacts())

    assert {"unknown"} == {s.status for s in states}
    assert all(s.reason and s.says for s in states)
    assert LAWS.keys() - {"L8"} == {s.law for s in states}


def test_what_was_tested_holds() -> None:
    """Four users with four requests open."""
    states, _ = checked(facts(concurrency=4), parallel_requests(144))

    assert "holds" == next(s.status for s in states if "closed loop" in s.says)


@pytest.mark.parametrize(("users", "expected"), [(4, []), (3, ["L1"])])
def test_little(users: int, expected: list[str]) -> None:
    """Four requests open at a time need four users."""
    assert expected == laws(facts(concurrency=users), parallel_requests(144))


def test_requests_of_an_open_loop_are_no_users() -> None:
    """What would be too many for three users breaks nothing where requests arrive at a rate."""
    open_loop = Scenario(load=Load(arrival="poisson", rate=20.0))

    run = facts(concurrency=3, scenario=open_loop)

    assert [] == laws(run, parallel_requests(144))
    assert "an open loop has no number of users" == why_untested(
        "L1", "closed loop", run, parallel_requests(144)
    )


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


@pytest.mark.parametrize(
    ("tokens", "weights", "expected"),
    [(4.9e6, None, []), (4.92e6, None, ["L4"]), (4e6, int(25e9), []), (4e6, int(27e9), ["L4"])],
)
def test_a_cache_fits_into_its_device(tokens: float, weights: int | None, expected: list[str]) -> None:
    """28 KiB a token: 4.9 million fill an H200 of 141 GB, four million leave 26 GB for the weights."""
    target = local_target("cuda:0", weights_bytes=weights, kv_bytes_per_token=28_672)
    start = sample("log.start", 0.0, kv_tokens=tokens)

    found = broken(facts(target=target, gpus=(H200,)), [], [start])

    assert expected == [v.law for v in found]
    assert all(("kv-cache",) == v.stops for v in found)


@pytest.mark.parametrize(
    ("per_token", "expected"),
    [
        (28_672 * 1.09, []), (28_672 * 1.12, ["L4"]), (28_672 / 1.09, []), (28_672 / 1.12, ["L4"]),
        (14_336, []), (57_344, []), (131_072, ["L4"]),
    ],
)  # fmt: skip
def test_a_cache_has_the_models_shape(per_token: float, expected: list[str]) -> None:
    """28 layers of 2 heads of 128 make 28 KiB, a cache of 8 bits half of it; 128 KiB is an 8B model's."""
    target = local_target("cuda:0", weights_bytes=None, kv_bytes_per_token=28_672)
    start = sample("log.start", 0.0, kv_tokens=1e5, kv_bytes=per_token * 1e5)

    assert expected == laws(facts(target=target, gpus=(H200,)), [], [start])


@pytest.mark.parametrize(
    ("told", "per_token", "why"),
    [
        ({}, 28_672, "no sample of `log.start`"),
        ({"kv_tokens": 1e5}, 28_672, "does not tell"),
        ({"kv_tokens": 1e5, "kv_bytes": 1.0, "workers": 2.0}, 28_672, "several workers"),
        ({"kv_tokens": 1e5, "kv_bytes": 1.0}, None, "take the model's shape"),
    ],
)
def test_a_cache_whose_numbers_are_missing(told: dict[str, float], per_token: int | None, why: str) -> None:
    """No log, no size in it, a part of it, or a model whose shape is not known."""
    target = local_target("cuda:0", weights_bytes=None, kv_bytes_per_token=per_token)
    samples = [sample("log.start", 0.0, **told)] if told else []

    assert why in why_untested("L4", "over its tokens", facts(target=target, gpus=(H200,)), [], samples)


IDLE_WRITES = {"reads_per_s": 100.0, "r_await_s": 0.01, "writes_per_s": 0.0, "w_await_s": None}
READS = {"reads_per_s": 6047.0, "r_await_s": 0.16e-3, "writes_per_s": 112.0, "w_await_s": 1.72e-3}


@pytest.mark.parametrize(
    ("queue", "expected"),
    [(1.16, []), (2.5, []), (2.6, ["L5"]), (0.49, []), (0.47, ["L5"]), (309.4, ["L5"])],
)
def test_littles_law_at_a_disk(queue: float, expected: list[str]) -> None:
    """6,047 reads of 0.16 ms and 112 writes of 1.72 ms keep 1.16 requests open; half as much is allowed."""
    found = broken(facts(), [], gauges("disk", **READS, aqu_sz=queue))

    assert expected == [v.law for v in found]
    assert all(("disk-io",) == v.stops and "milliseconds" in v.likely for v in found)


def test_each_disk_has_its_own_queue() -> None:
    """A busy disk beside an idle one: what is averaged are queues, never rates with waits of another."""
    idle = {"reads_per_s": 0.0, "r_await_s": 9.0, "writes_per_s": 0.0, "w_await_s": 0.0, "aqu_sz": 0.0}
    busy = gauges("disk", labels={"disk": "a"}, **READS, aqu_sz=1.16)

    assert [] == laws(facts(), [], [*busy, *gauges("disk", labels={"disk": "b"}, **idle)])


@pytest.mark.parametrize(("queue", "expected"), [(1.0, []), (5.0, ["L5"])])
def test_what_was_not_asked_for_waits_for_nothing(queue: float, expected: list[str]) -> None:
    """iostat prints no wait of writes where there were none; 100 reads of 10 ms keep one open."""
    assert expected == laws(facts(), [], gauges("disk", **IDLE_WRITES, aqu_sz=queue))


def test_a_disk_whose_queue_nobody_printed_is_not_judged() -> None:
    """Counters of our own probe hold no rates."""
    samples = gauges("disk", reads_per_s=6047.0, r_await_s=9.0)

    assert "side by side" in why_untested("L5", "disk", facts(), [], samples)


@pytest.mark.parametrize(("seconds", "expected"), [(0.61, []), (0.59, ["L6"])])
def test_weights_cross_the_bus(seconds: float, expected: list[str]) -> None:
    """40 GB over PCIe 5 x16, 63 GB/s, take 0.6 s with five per cent of rounding."""
    card = GpuFacts(index=0, name="NVIDIA H200", pcie="gen5 x16")
    start = sample("log.start", 0.0, weights_bytes=40e9, weights_s=seconds)

    found = broken(facts(gpus=(card,)), [], [start])

    assert expected == [v.law for v in found]
    assert all(("disk-io",) == v.stops for v in found)


@pytest.mark.parametrize("pcie", [None, "gen9 x16", "nonsense"])
def test_a_bus_that_is_not_known(pcie: str | None) -> None:
    """On another host, or of a generation that has no number here."""
    start = sample("log.start", 0.0, weights_bytes=40e9, weights_s=0.01)
    run = facts(gpus=(GpuFacts(index=0, name="X", pcie=pcie),))

    assert "PCIe generation" in why_untested("L6", "PCIe", run, [], [start])


@pytest.mark.parametrize(("graph_s", "expected"), [(7.5, []), (9.0, ["L7"])])
def test_parts_of_a_start_lie_within_it(graph_s: float, expected: list[str]) -> None:
    """10 + 5 s hold 5 of compiling, 2 more of loading than weights, and 7.5 of graphs, not 9."""
    told = {"model_s": 10.0, "weights_s": 2.0, "engine_s": 5.0, "graph_s": graph_s - 2.0, "compile_s": 0.2}

    assert expected == laws(facts(), [], [sample("log.start", 0.0, **told)])


def finding(share: float | None, *bounds: tuple[float, float] | None) -> Finding:
    fixes = tuple(
        FixOffer(id=f"fix-{n}", title="Fix", verdict="confirmed", bound=b) for n, b in enumerate(bounds)
    )
    return Finding(
        rule="serial-server", cls="scheduling", title="Serial", status="hit", share=share, fixes=fixes
    )


@pytest.mark.parametrize(
    ("share", "most", "status"),
    [(0.75, 4.0, "holds"), (0.75, 4.1, "broken"), (None, 1.1, "broken"), (1.0, 1e9, "holds")],
)
def test_a_fix_gains_no_more_than_its_finding(share: float | None, most: float, status: str) -> None:
    """Three quarters allow fourfold; more than that is no promise any longer."""
    (found,), state, broken = promises.hold([finding(share, (1.0, most), None)])

    assert ("L8", status) == (state.law, state.status)
    assert ["L8"] * (status == "broken") == [v.law for v in broken]
    assert ((1.0, most) if status == "holds" else None) == found.fixes[0].bound


def test_without_a_promise_there_is_nothing_to_test() -> None:
    """Unknown, with the reason."""
    _, state, _ = promises.hold([finding(0.5, None)])

    assert ("unknown", True) == (state.status, bool(state.reason))


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
