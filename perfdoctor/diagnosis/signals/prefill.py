"""Reading the prompt: how much of a request it takes, and whether arithmetic or starting it is the price."""

from __future__ import annotations

from perfdoctor import stats
from perfdoctor.diagnosis import gpus, spans
from perfdoctor.diagnosis.measure import Measure, Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, Window, median, ratio
from perfdoctor.diagnosis.signals import gpu, requests, roof

LEAST_S = 0.2  # a GPU counter is read that often: a shorter prefill holds no reading of its own


def windows(obs: Observations) -> list[Window]:
    """Stretches in which a steady request's prompt was read, as far as they are told apart from its queue."""
    return obs.once("prefill windows", lambda: _windows(obs))


def _windows(obs: Observations) -> list[Window]:
    found = []
    for split in spans.split_requests(obs).requests:
        first, length = split.record.first_token_s, split.parts.get("prefill", 0.0)
        if first is not None and length > 0:
            found.append(Window(obs, "prefill", first - length, first))
    if not found:
        raise NoValue("the time of reading prompts is not told apart here")
    return found


@signal("prefill.mean", unit="s")
def mean(obs: Observations) -> Reading:
    """Mean time the model read a prompt, in seconds, queue left out. Missing when the two are not told apart.

    Cross-check: the server's prefill-time metric.
    """
    found = [w.seconds for w in windows(obs)]
    return Reading(stats.mean(found) or 0.0, n=len(found))


@signal("decode.of_prefill.share", unit="share")
def token_of_prefill(obs: Observations) -> float:
    """Time per output token over the time of reading the prompt: near 1 when each token reads it again.

    Says that only of long prompts whose time is the device's; a short one costs what a step costs anyway.
    Missing where prefill is not told apart. Cross-check: TPOT over TTFT of one request at a time.
    """
    return ratio(requests.STEADY_TPOT.of(obs), mean.of(obs), "the time of a prefill")


@signal("prefill.tokens_per_s", unit="tokens/s")
def pace(obs: Observations) -> float:
    """Prompt tokens read per second of prefill, one request at a time. Missing without the server's count."""
    tokens = [r.prompt_tokens for r in obs.ok("steady") if r.prompt_tokens]
    if not tokens:
        raise NoValue("the server does not report prompt tokens")
    return ratio(stats.mean([float(t) for t in tokens]) or 0.0, mean.of(obs), "the time of a prefill")


@signal("prefill.tensor_rate.share", unit="share")
def arithmetic(obs: Observations) -> float:
    """Arithmetic of reading prompts over the GPU's dense 16-bit tensor rate, 0-1; half is very good.

    2 FLOP a weight and token, attention left out. Missing on a CPU, and without the model's size.
    """
    flops = obs.facts.target.step_flops
    if not flops:
        raise NoValue("the arithmetic of a token is unknown")
    if gpu.on_gpu.of(obs) == 0:
        raise NoValue("the CPU's arithmetic rate was not calibrated")
    return flops * pace.of(obs) / gpus.datasheet(roof.gpu_name(obs)).tensor_flops_per_s


@signal("prefill.stretch", unit="x")
def stretch(obs: Observations) -> float:
    """Time to the first token with prompts twice as long, over that of the usual ones: an experiment.

    Near 2, reading the prompt is the work; near 1, starting it is. Missing where the experiment was not made.
    Cross-check: `perfdoctor load-test --prompt-tokens` with one and with twice the length.
    """
    usual, longer = _ttft(obs, "usual"), _ttft(obs, "long_prompt")
    return ratio(longer, usual, "the time to the first token")


def _ttft(obs: Observations, kind: str) -> float:
    found = [
        r.first_token_s - r.sent_s
        for r in obs.ok("experiment")
        if r.kind == kind and r.first_token_s is not None and r.sent_s is not None
    ]
    return median(found)


def _gpu(metric: str, what: str) -> Measure:
    def compute(obs: Observations) -> Reading:
        gpu.require_gpu(obs)
        values: list[float] = []
        for window in windows(obs):
            # a reading is the mean of the time before it: the first ones of a prefill began before it
            inner = Window(obs, "prefill", window.start_s + LEAST_S, window.end_s)
            if inner.seconds > 0:
                values += _readings(obs, inner, metric)
        return Reading(median(values), n=len(values))

    page = (
        f"Median of GPM's {metric} while prompts were read: {what}.\n\n"
        "Missing when prefills are shorter than the counters' 0.2 s. Device-wide."
    )
    return Measure(f"gpu.{metric}.prefill.p50", "share", compute, page)


def _readings(obs: Observations, window: Window, metric: str) -> list[float]:
    try:
        return gpu.of_device(obs, window, metric)
    except NoValue:
        return []


BUSY = _gpu("graphics_active", "share of time in which any kernel ran")
TENSOR = _gpu("tensor_active", "share of cycles in which the tensor units worked")
DRAM = _gpu("dram_active", "share of the peak memory bandwidth in use")

SIGNALS = (mean, token_of_prefill, pace, arithmetic, stretch, BUSY, TENSOR, DRAM)
