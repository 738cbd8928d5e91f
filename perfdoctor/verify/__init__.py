"""Tries a fix: two servers that differ in it alone, driven in turn, and what that shows beyond chance.

    STAMP-verify/verify.json            the record; its numbers can be derived again
    STAMP-verify/before.log after.log   what the two servers printed
    STAMP-verify/ledgers/               one diagnosis of each side
    STAMP-verify/before/ after/         the runs, by pair: `perfdoctor compare STAMP-verify/before .../after`

Both stay up while one is driven, where memory allows; otherwise one is stopped before the other starts.
"""

from perfdoctor.verify._all import conduct_all
from perfdoctor.verify._conduct import conduct
from perfdoctor.verify._folder import is_trials, is_verify, read, read_trials
from perfdoctor.verify._plan import Plan, foreign, of_fix, of_settings

__all__ = [
    "Plan", "conduct", "conduct_all", "foreign", "is_trials", "is_verify", "of_fix", "of_settings", "read",
    "read_trials",
]  # fmt: skip
