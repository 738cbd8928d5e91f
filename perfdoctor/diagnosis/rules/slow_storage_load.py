"""Loading the model waits for storage.

What: the weights come from a disk that is slow, cold or limited by a cgroup, and the loading process spends a
good part of the load blocked on reads. Affects the start of a server and its first answer, never the pace of
one that is loaded.

Cost: the waiting time. Limit 0.3: below it a perfect disk saves less than a third of the load.

Told apart from unpacking and casting on the CPU by the process's CPU time, from copying to the GPU by PCIe
traffic, from a warm page cache by the share of the file that was resident: a second load of the same file
looks cured and is not. Device counters such as %util are not used, since throttled IO hides from them.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, at_least

RULE = Rule(
    cls="disk-io",
    title="Loading the model waits for storage",
    when=all_of(
        at_least("load.storage_wait.share", 0.30, source="below it a perfect disk saves under 30 %"),
        at_least("load.storage_wait.seconds", 1.0, source="guess: less is not worth a fix"),
    ),
    cost=("storage_wait",),
    of="load",
    told_apart=(
        Neighbour(
            "warm page cache",
            at_least("load.file_resident.share", 0.90, source="a warm file needs no disk"),
            refutes=True,
        ),
        Neighbour(
            "cpu-deserialise",
            at_least("load.oncpu.share", 0.80, source="measured: 0.2-0.5 cores when cold, 1.0-1.1 when warm"),
        ),
        Neighbour(
            "host-to-device copy",
            all_of(
                at_least("gpu.used", 1, source="without a GPU there is no copy"),
                at_least(
                    "load.pcie_rx.p50",
                    4e9,
                    source="measured on an H200: 4.4-5.1 GB/s warm, 1.5-1.7 when cold",
                ),
            ),
        ),
    ),
    support=(at_least("load.psi_io.share", 0.10, source="measured: 0.17-0.23 when cold, 0 when warm"),),
    says=(
        "Slow storage: {cost.share} of loading ({cost.seconds} of {load.wall}) is waiting for the disk",
        "weights arrived at {load.read.rate}",
        "{load.file_resident.share} of the files were in the page cache",
    ),
)
