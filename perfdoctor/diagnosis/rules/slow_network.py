"""The way between client and server takes a good part of each request.

What: a slow or lossy link, a proxy that holds bytes back, a new connection with a TLS handshake for each
request.

Cost: bytes on the way and connecting, as far as both ends' stamps tell; without the server's, only connecting
is seen.

Told apart from a server that queues by the server's own stamps, and from a slow client by the client's
health.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, any_of, at_least
from perfdoctor.diagnosis.rules._conditions import CLIENT_LIMITED

RULE = Rule(
    cls="network",
    title="The way to the server takes a good part of each request",
    when=any_of(
        at_least("request.network.share", 0.20, source="guess: less is not worth a change"),
        at_least("request.connect.share", 0.20, source="guess: less is not worth a change"),
    ),
    cost=("network", "connect"),
    told_apart=(
        CLIENT_LIMITED,
        Neighbour(
            "event-loop",
            at_least("stall.shared.share", 0.10, source="all streams pause at once: the front end does"),
        ),
    ),
    says=("Network: {cost.share} of a request passes between client and server",),
)
