"""Drives load: an HTTP client that stamps every token, and the loop of users around it.

Knows nothing of probes or verdicts; what it sees leaves as `RequestRecord`s. A slow client looks exactly like
a slow server, so the path of one token is kept as short as Python allows and the client's own health is
recorded.
"""
