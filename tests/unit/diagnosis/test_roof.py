"""Three numbers, never one: physical, achievable, and the term that binds."""

from __future__ import annotations

import pytest

from perfdoctor.diagnosis.measure import measure_all
from perfdoctor.diagnosis.observations import Observations
from perfdoctor.diagnosis.roof import measure_roof
from perfdoctor.model import RequestRecord, Roof, RunFacts, Sample
from tests.factories import H200, facts, local_target, request, sample


def roof(run: RunFacts, requests: list[RequestRecord], samples: list[Sample] | None = None) -> Roof:
    obs = Observations(run, "complete", requests, samples or [])
    return measure_roof(run, measure_all(obs))


def on_cpu(copy: float = 20e9, **target: object) -> RunFacts:
    return facts(target=local_target(**target), calibration={"copy_bytes_per_s": copy})  # type: ignore[arg-type]


def test_memory_binds() -> None:
    """10 of 12.5 GB/s: four fifths of what is achievable, and memory is the term."""
    found = roof(on_cpu(12.5e9), [request(sent_s=21.0)])

    assert 0.8 == pytest.approx(found.achievable_share)
    assert "memory" == found.binding
    assert found.physical_share is None
    assert "bandwidth: calibrated copy on this machine" in found.assumptions


def test_launch_binds() -> None:
    """A profiled step that is mostly gap, far from the roof."""
    step = sample("step", 70.0, wall_s=0.1, kernel_s=0.03)

    assert "launch" == roof(on_cpu(100e9), [request(sent_s=21.0)], [step]).binding


def test_nothing_binds_by_elimination() -> None:
    """Far from the roof and no step measured: no term is named."""
    assert roof(on_cpu(100e9), [request(sent_s=21.0)]).binding is None


def test_compute_binds() -> None:
    """5e13 operations every 0.1 s are half of an H200's 989 TFLOP/s."""
    run = facts(target=local_target("cuda:0", step_flops=50 * 10**12, step_bytes=10**9), gpus=(H200,))

    found = roof(run, [request(sent_s=21.0)])

    assert "compute" == found.binding
    assert 0.5 == pytest.approx(found.physical_share, abs=0.01)


def test_physical_and_achievable_differ_by_the_copy_ceiling() -> None:
    """The datasheet is never reached."""
    found = roof(facts(target=local_target("cuda:0"), gpus=(H200,)), [request(sent_s=21.0)])

    assert found.physical_share is not None
    assert found.achievable_share == pytest.approx(found.physical_share / 0.89)


def test_refused() -> None:
    """No size, no roof; and it says so."""
    found = roof(on_cpu(step_bytes=None), [request(sent_s=21.0)])

    assert found.achievable_share is None
    assert "unknown" in (found.missing or "")
