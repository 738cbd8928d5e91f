"""One load test per level, below one folder, and what they say together: the knee, the load within an SLO.

    STAMP-sweep/sweep.json      the record: which levels were run and why; its numbers can be derived again
    STAMP-sweep/01-c1/          each level is an ordinary run folder

Every level begins with a server at rest, and with prompts that no level before has sent, unless they come
from a file. sweep.json is written when a level begins and when it ends, so that a sweep killed at any moment
shows what it has.
"""

from perfdoctor.sweep._conduct import conduct
from perfdoctor.sweep._doubt import levels_in_doubt
from perfdoctor.sweep._folder import is_sweep, read
from perfdoctor.sweep._steps import Plan

__all__ = ["Plan", "conduct", "is_sweep", "levels_in_doubt", "read"]
