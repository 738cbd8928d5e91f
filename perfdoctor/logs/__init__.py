"""What the lines of a server's log say, whoever reads them: beside a run that goes on, or from a pasted file.

Pure, a line at a time. Each file but those that start with `_` is one engine's lines, found by its constant
SAYS. A line that no pattern knows says nothing; a number that a line leaves out is absent, never zero.
"""

from perfdoctor.logs._line import Kind, Lines, Pattern, Said, read_line, read_statistics
from perfdoctor.logs._preempted import Preempted
from perfdoctor.logs._stamp import Stamp, read_stamp
from perfdoctor.logs._start import Start, Step, Tally, read_start

__all__ = [
    "Kind", "Lines", "Pattern", "Preempted", "Said", "Stamp", "Start", "Step", "Tally", "read_line",
    "read_stamp", "read_start", "read_statistics",
]  # fmt: skip
