"""The server was asked for too little to show a limit.

What: for much of the time no request was open, or only one user asked. Low utilisation is then no evidence of
anything: an idle server and a badly fed one look the same.

Cost: none. Ask for more at a time and look again.

Told apart from a client that could not ask faster, which client-limited reports, and given up as soon as any
other rule explains where the time goes.
"""

from perfdoctor.diagnosis.rule import Rule, any_of, below

RULE = Rule(
    cls="insufficient-load",
    title="Too little load to show a limit",
    of="measurement",
    only_alone=True,
    when=any_of(
        below("drive.busy.share", 0.50, source="offered load is under half of what one user makes"),
        below("drive.concurrency", 2, source="one user shows no queue and no scaling"),
    ),
    says=(
        "Too little load: {drive.concurrency} at a time, a request was open {drive.busy.share} of the time",
        "a request takes {e2e.steady.p50}",
    ),
)
