"""Two runs, or two folders of several, against each other: what changed, and whether chance explains it.

    one run each        over their requests; how far two runs of the same differ is then not known
    several runs each   over the runs
    two sweeps          level by level, over requests

Comparing is a function of the folders: nothing is written.
"""

from perfdoctor.compare._compare import compare, compare_pairs, row_of_pairs
from perfdoctor.compare._side import OneRun, Side, mean_answer_s, read_run, read_side, why_not

__all__ = [
    "OneRun", "Side", "compare", "compare_pairs", "mean_answer_s", "read_run", "read_side", "row_of_pairs",
    "why_not",
]  # fmt: skip
