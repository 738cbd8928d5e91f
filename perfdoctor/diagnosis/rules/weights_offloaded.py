"""Weights live in host memory and cross the bus for each token.

What: the model did not fit, or a loader was told to offload (`device_map="auto"`, `cpu_offload`): each step
copies weights to the GPU again, at 5-8 GB/s from pageable memory.

Cost: the copies, which take nearly the whole step, while the multiprocessors do nothing. `utilization.gpu`
may read anything up to 100 % meanwhile, since a copy counts as activity.

Told apart from launch-bound decoding by the amount: launches alone make under 0.1 GB/s.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, at_least, below

RULE = Rule(
    cls="pcie-offload",
    title="Weights cross the bus for each token",
    when=all_of(
        at_least("gpu.used", 1, source="the model runs on a GPU"),
        at_least("transfer.per_step.share", 0.05, source="a twentieth of the weights in each step"),
        at_least(
            "gpu.pcie_rx_bytes_per_s.decode.p50",
            1e9,
            source="measured on an H200: offloading makes 5-8 GB/s, launches under 0.1",
        ),
    ),
    cost=("decode.transfer",),
    told_apart=(
        Neighbour(
            "memory-bandwidth",
            at_least(
                "gpu.dram_active.decode.p50", 0.623, source="0.7 of a copy, which reads 0.89 on an H200"
            ),
        ),
    ),
    support=(below("gpu.sm_active.decode.p50", 0.20, source="measured on an H200: 0.001 while offloading"),),
    explains=(
        "launch-bound-decode",
        "bandwidth-bound-decode",
        "allocator-churn",
    ),
    says=(
        "Offloaded: {transfer.per_step.share} of the weights are sent to the GPU in each step",
        "{gpu.pcie_rx_bytes_per_s.decode.p50} arrive there",
        "{gpu.sm_active.decode.p50} of its multiprocessors have work",
    ),
)
