"""Turning text into tokens takes a good part of each request.

What: a tokenizer in pure Python, a very long prompt, or a chat template that is rendered anew; often in the
event loop, where it holds up everybody else.

Cost: the time from the server beginning with a request to its tokens. Seen only where the server tells it.

Told apart from reading the prompt by the model, which comes after, and from waiting in the queue before.
"""

from perfdoctor.diagnosis.rule import Rule, at_least

RULE = Rule(
    cls="tokenizer",
    title="Tokenising takes a good part of each request",
    when=at_least("request.tokenise.share", 0.15, source="guess: a fast tokenizer takes under 1 %"),
    cost=("tokenise",),
    says=("Slow tokenizer: {request.tokenise.share} of a request passes before the model sees a token",),
)
