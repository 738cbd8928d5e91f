"""The host cannot feed the device: decoding waits for Python and kernel launches.

What: each token needs a thousand small operations, and starting them takes longer than running them. The
serving thread is on a CPU all the time while the GPU, or on a CPU the arithmetic itself, is mostly idle. On a
CPU the same state is called host-bound: the interpreter and the dispatcher are the work.

Cost: step time minus device time, for every token. While it lasts, a smaller dtype, a faster GPU or no KV
cache change nothing, because they shorten what is not waited for. Limit 0.6: below it a perfect launcher
gives more than 1.6 times the speed.

Told apart from memory bandwidth by what the pace implies or DRAM counters, from GIL contention by a second
holder, from CPU contention by run-queue wait, from offloading by PCIe traffic. `utilization.gpu` is never
used: one spinning thread makes it read 100 %. Counters of a GPU that runs other work too can hide this state.
Where only the interpreter lock can be watched, a lock that is mostly free clears nothing, since native
launches release it, and one that is held while nobody asks is somebody else's. A server without CUDA graphs
whose thread never rests, far below what memory delivers, shows the pattern without any counter; a thread that
waits for the GPU can look as busy, so that confidence is low then.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, at_least, below, first_known, only_shows
from perfdoctor.diagnosis.rules._conditions import CLIENT_LIMITED

HOST_BUSY = at_least(
    "cpu.serving.busy.share", 0.80, source="measured on an H200: 26.8 of 26.9 ms a step on a CPU"
)
ROOF_FAR = below("roof.memory.share", 0.40, source="guess: memory could deliver 2.5 times as much")
PYTHON_WORKS = only_shows(
    all_of(
        at_least("gil.held.share", 0.60, source="guess: Python is most of the work"),
        below("gil.idle.share", 0.30, source="guess: what holds it unasked does not serve"),
    ),
    why="host code that released the interpreter lock, or waits for it, is not seen",
)

LAUNCHES_EACH = only_shows(
    all_of(
        at_least("engine.eager", 1, source="without CUDA graphs each operation is launched by the host"),
        below(
            "roof.memory.share",
            0.20,
            source="guess; an H200 reads 1-3 % of what it can in eager steps, 14 % and more in graphs",
        ),
    ),
    why="graphs can wait for the host between them, and a large batch comes nearer to the roof",
)

RULE = Rule(
    cls="launch-overhead",
    title="Host code, not the device, sets the pace of decoding",
    when=all_of(
        HOST_BUSY,
        first_known(
            below("step.device.share", 0.60, source="below it a perfect launcher gives > 1.6 x"),
            all_of(
                below(
                    "gpu.graphics_active.decode.p50", 0.60, source="below it a perfect launcher gives > 1.6 x"
                ),
                below(
                    "gpu.sm_active.decode.p50", 0.50, source="NVIDIA: below half, the GPU is not used well"
                ),
                at_least(
                    "gpu.pcie_rx_bytes_per_s.decode.p50",
                    10e6,
                    source="guess: eager decode makes 40-80 MB/s of launch traffic, an idle GPU 0.3",
                ),
            ),
            all_of(below("step.kernel.share", 0.50, source="guess: more overhead than arithmetic"), ROOF_FAR),
            all_of(PYTHON_WORKS, ROOF_FAR),
            LAUNCHES_EACH,
        ),
    ),
    cost=("decode.launch_gap", "prefill.launch_gap"),
    support=(
        at_least("engine.eager", 1, source="without CUDA graphs each operation is launched by the host"),
        below("gpu.sm_active.decode.p50", 0.50, source="NVIDIA: below half, the GPU is not used well"),
        at_least("step.launches", 300, source="guess; eager mode makes about 42 a layer"),
    ),
    told_apart=(
        Neighbour(
            "memory-bandwidth",
            first_known(
                at_least(
                    "gpu.dram_active.decode.p50", 0.623, source="0.7 of a copy, which reads 0.89 on an H200"
                ),
                at_least("roof.memory.share", 0.50, source="the limit of bandwidth-bound-decode"),
            ),
        ),
        Neighbour(
            "busy-device",  # not seen without counters, so that the other signs are a pattern only
            first_known(
                at_least("step.device.share", 0.60, source="the limit above"),
                all_of(
                    at_least("gpu.used", 1, source="on a CPU the roof tells it"),
                    at_least("gpu.graphics_active.decode.p50", 0.60, source="the limit above"),
                ),
            ),
        ),
        Neighbour(
            "gil-contention",
            at_least("gil.second.share", 0.30, source="guess: a third of the time is somebody else's"),
        ),
        Neighbour(
            "cpu-contention",
            at_least(
                "cpu.serving.runq_wait.share", 0.10, source="guess; one busy rival on the core makes 0.5"
            ),
        ),
        Neighbour(
            "cpu-starvation",
            at_least("cpu.serving.runq_wait.share", 0.50, source="guess: waiting is then the larger half"),
            refutes=True,
        ),
        Neighbour(
            "pcie-offload",
            all_of(
                at_least("gpu.used", 1, source="without a GPU there is no transfer"),
                at_least(
                    "gpu.pcie_rx_bytes_per_s.decode.p50",
                    1e9,
                    source="measured on an H200: offloading makes 5-8 GB/s, launches under 0.1",
                ),
            ),
            refutes=True,
        ),
        CLIENT_LIMITED,
    ),
    says=(
        "Launch-bound: the GPU is busy only {step.device.share} of a {step.wall} decode step",
        "the GPU runs kernels {gpu.graphics_active.decode.p50} of the time, "
        "{gpu.sm_active.decode.p50} of its multiprocessors have work",
        "Host-bound: arithmetic is only {step.kernel.share} of a {step.wall} decode step on this CPU",
        "Python holds the interpreter {gil.held.share} of the time",
        "the serving thread never rests (on a CPU {cpu.serving.oncpu.share} of the time)",
        "{step.launches} kernel launches a token",
        "memory traffic is {roof.memory.share} of what is in reach, so fewer bytes will not help",
    ),
)
