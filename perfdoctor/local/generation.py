"""One request's generate(): the streamer that stamps and delivers its tokens, and what stops it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer

from perfdoctor.local.load import LoadedModel
from perfdoctor.local.profile import StepProfiler, tokens_needed
from perfdoctor.local.request import Broken, Deliver, Done, Piece, Request
from perfdoctor.local.text import Detokenizer, Splitter, opens_reasoning


class Generation(BaseStreamer):
    """Times are instants on the run's clock, taken as generate() hands a token over."""

    def __init__(
        self,
        loaded: LoadedModel,
        request: Request,
        deliver: Deliver,
        stop: threading.Event,
        now: Callable[[], float],
    ) -> None:
        self._loaded, self._request, self._deliver = loaded, request, deliver
        self._stop, self._now = stop, now
        self._splitter = Splitter(*loaded.markers, reasoning=False)
        self._detokenizer = Detokenizer(loaded.decode, loaded.known_tokens)
        self._profiler: StepProfiler | None = None
        if request.profile_steps:
            self._profiler = StepProfiler(request.profile_steps, loaded.cuda, now)
        self._end_ids = frozenset() if request.ignore_eos or request.profile_steps else loaded.end_ids
        self._prompt_tokens: int | None = None
        self._prompt_skipped = False
        self._ended = False
        self._count = 0
        self._tokenised_s: float | None = None
        self._first_s: float | None = None
        self._last_s: float | None = None

    def run(self) -> Done | Broken:
        prompt = self._loaded.render(self._request)
        ids = self._loaded.encode(prompt)
        self._tokenised_s = self._now()
        self._prompt_tokens = int(ids.shape[1])
        if self._prompt_tokens >= self._loaded.context:
            what = f"the prompt has {self._prompt_tokens} tokens, the context {self._loaded.context}"
            return Broken(what, code="context_length_exceeded")
        self._splitter.reasoning = self._request.messages is not None and opens_reasoning(prompt)
        try:
            self._generate(ids)
        finally:
            if self._profiler:
                self._profiler.close()
        return Done("stop" if self._ended else "length", self._prompt_tokens, self._count)

    def _generate(self, ids: torch.Tensor) -> None:
        request, model = self._request, self._loaded.model
        if request.seed is not None:
            torch.manual_seed(request.seed)
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=self._settings(ids.shape[1]),
            streamer=self,
            stopping_criteria=StoppingCriteriaList([_Cancelled(self._stop, ids.device)]),
            **self._own_cache(ids.shape[1]),
        )

    def _own_cache(self, prompt_tokens: int) -> dict[str, Any]:
        """The argument that gives generate() a cache of ours, where a switch asks for one."""
        make, model = self._loaded.plan.cache, self._loaded.model
        if make is None:
            return {}
        # its name in transformers before 5.24, and since
        name = "past_key_values" if "past_key_values" in signature(model.forward).parameters else "cache"
        return {name: make(prompt_tokens + self._longest(prompt_tokens))}

    def _longest(self, prompt_tokens: int) -> int:
        """Tokens that this request may generate."""
        profiled = tokens_needed(self._request.profile_steps) if self._profiler else 0
        return min(max(self._request.max_tokens, profiled), self._loaded.context - prompt_tokens)

    def _settings(self, prompt_tokens: int) -> GenerationConfig:
        """The request's settings over the checkpoint's; the end ids are left out to run to max_tokens."""
        request, own = self._request, self._loaded.defaults
        temperature = own.temperature if request.temperature is None else request.temperature
        sampling: dict[str, Any] = {"do_sample": False}
        if temperature > 0 and (own.do_sample or request.temperature is not None):
            top_p = own.top_p if request.top_p is None else request.top_p
            sampling = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": own.top_k}
        return GenerationConfig(
            max_new_tokens=self._longest(prompt_tokens),
            eos_token_id=sorted(self._end_ids) or None,
            pad_token_id=self._loaded.pad_id,
            **sampling,
            **self._loaded.plan.config,
        )

    def put(self, value: torch.Tensor) -> None:
        """generate() calls this with the whole prompt first, then with one token at a time."""
        if not self._prompt_skipped:
            self._prompt_skipped = True
            return
        at_s = self._now()
        if self._profiler:
            self._profiler.on_token()
        token = int(value.reshape(-1)[-1])
        if token in self._end_ids:
            self._ended = True
            return
        self._count += 1
        self._first_s = self._first_s or at_s
        self._last_s = at_s
        self._deliver(self._piece(token))

    def end(self) -> None:
        """Part of the streamer's interface; `run` returns at the same moment."""

    def _piece(self, token: int) -> Piece:
        if self._request.messages is None:
            return Piece(self._detokenizer.push(token), "answer")
        place = self._splitter.place(token)
        if place is None:
            return Piece(self._detokenizer.flush(), "reasoning")
        return Piece(self._detokenizer.push(token), place)

    def instants(self) -> dict[str, float | None]:
        """Of the `serve` sample, those that this side knows; None: not reached."""
        return {
            "tokenised_s": self._tokenised_s,
            "first_token_s": self._first_s,
            "last_token_s": self._last_s,
            "prompt_tokens": self._prompt_tokens,
            "output_tokens": self._count,
        }

    def step_values(self) -> dict[str, float | None] | None:
        """Of the `step` sample; None when no profile was asked for or the generation was cut short."""
        return self._profiler.values() if self._profiler else None


class _Cancelled(StoppingCriteria):
    """Ends the generation at the next token once its client is gone. Both answers are made beforehand."""

    def __init__(self, stop: threading.Event, device: torch.device) -> None:
        self._stop = stop
        self._yes = torch.ones(1, dtype=torch.bool, device=device)
        self._no = torch.zeros(1, dtype=torch.bool, device=device)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:
        return self._yes if self._stop.is_set() else self._no
