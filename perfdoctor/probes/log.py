"""A server's own log, where one was named: statistics, ended requests, preemptions, what its start took.

For servers whose /metrics is closed or absent. What goes on, and what is counted, comes only from lines
written during the run. The start was before: the begin of the file is looked through for it, and it is a
reading of its own, `log.start`; another one when the server starts, or loads a model, during the run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfdoctor import logs
from perfdoctor.probes._probe import Gap, NotYet, Probe, Reading, Unavailable, counters, gauges
from perfdoctor.probes._subject import Subject

AT_ONCE = 2**20  # bytes of one reading: a log that grows faster is skipped over, and says so
START_BYTES = (
    4 * 2**20
)  # of the file's begin: a start writes less than a tenth of it, and it takes 0.2 to 0.8 s
METRICS = (
    *gauges(
        "log",
        "tail -f LOG | grep -E 'Running:|#running-req'",
        {
            "running": ("", "requests being served"),
            "waiting": ("", "requests queued inside the server"),
            "kv_usage": ("share", "KV cache in use"),
            "generation_tokens_per_s": ("tokens/s", "pace of generation as the server averages it"),
            "prompt_tokens_per_s": ("tokens/s", "pace of reading prompts as the server averages it"),
            "prefix_hit_share": ("share", "of prompt tokens found in the prefix cache, as it averages it"),
            "cuda_graph": ("flag", "1 when the last decode step was a CUDA graph"),
        },
    ),
    *counters(
        "log",
        "grep -cE 'preempted|retracted' LOG",
        {"preemptions": ("", "requests thrown out of the KV cache, counted from the run's begin")},
    ),
    *counters(
        "log",
        "grep 'eval time' LOG",
        {
            "prefill_sum_s": ("s", "time of prefills added up, from the run's begin"),
            "prefill_count": ("", "requests in prefill_sum_s"),
            "prompt_tokens": ("tokens", "prompt tokens in prefill_sum_s"),
            "decode_sum_s": ("s", "time of decoding added up, from the run's begin"),
            "decode_count": ("", "requests in decode_sum_s"),
            "output_tokens": ("tokens", "tokens in decode_sum_s"),
        },
    ),
    *gauges(
        "log.start",
        "grep -E 'Loading weights took|Graph capturing finished|init engine' LOG",
        {
            "start_s": ("s", "from the banner to the first line that says it answers"),
            "model_s": ("s", "loading the model, its weights included"),
            "weights_s": ("s", "reading the weights into their places"),
            "engine_s": (
                "s",
                "from the loaded model to a ready engine: profiling, cache, compilation, graphs",
            ),
            "compile_s": ("s", "torch.compile"),
            "profile_s": ("s", "the trial run that measures memory, compilation included"),
            "warmup_s": ("s", "the trial run after compilation"),
            "graph_s": ("s", "capturing CUDA graphs"),
            "runner_s": ("s", "the whole start of ollama's runner"),
            "weights_bytes": ("bytes", "memory of the loaded model on one device"),
            "graph_bytes": ("bytes", "memory of the CUDA graphs"),
            "kv_bytes": ("bytes", "memory of the KV cache on one device"),
            "kv_tokens": ("", "tokens that the KV cache has room for"),
            "request_tokens": ("", "tokens of a request at most"),
            "most_running": ("", "requests served together at most"),
            "workers": ("", "processes that went through the start side by side"),
            "kv_concurrency": ("", "requests of full length that fit into it"),
            "on_host_share": ("share", "layers that run on the CPU, of all"),
            "eager": ("flag", "1 when CUDA graphs are switched off"),
        },
    ),
)


# our counter -> the values of an ended request that it adds up
_ENDED = {"prefill": ("prefill_s", "prompt_tokens"), "decode": ("decode_s", "output_tokens")}


class LogReader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream = path.open("rb")
        self._starts = logs.Tally()
        self._starts.feed(_begin(path))
        self._told: Mapping[str, float] = {}
        self._stream.seek(0, os.SEEK_END)
        self._rest = b""
        self._preempted = logs.Preempted()
        self._sums: dict[str, float] = {}
        self._counted: set[str] = set()
        self.gaps: Sequence[Gap] = ()

    def read(self) -> Sequence[Reading]:
        """The last statistics since the reading before, the counters, and a start that was not told yet."""
        values: dict[str, float | None] = {}
        for line in self._lines():
            said = logs.read_line(line)
            if not said:
                continue
            self._preempted.take(said)
            self._starts.take(said, logs.read_stamp(line))
            for part in said:
                if part.kind == "statistics":
                    values |= part.values
                elif part.kind == "request":
                    self._add(part.values)
        readings = [*self._first(), Reading({**values, **self._counters()})]
        start = self._starts.start()
        if start and (told := start.values()) != self._told:
            self._told = told
            readings.append(Reading(told, probe="log.start"))
        return readings

    def _counters(self) -> dict[str, float]:
        count = self._preempted.count
        return self._sums if count is None else self._sums | {"preemptions": count}

    def _first(self) -> Sequence[Reading]:
        """Counters that are known only now were zero at the run's begin: their first line may hold a gain."""
        new = self._counters().keys() - self._counted
        self._counted |= new
        return (Reading(dict.fromkeys(new, 0.0)),) if new else ()

    def _lines(self) -> Sequence[str]:
        """Whole lines written since the reading before. A file that shrank was begun anew."""
        if self._path.stat().st_size < self._stream.tell():
            self._stream.seek(0)
            self._rest = b""
        data = self._stream.read(AT_ONCE)
        if len(data) == AT_ONCE:
            self.gaps = (Gap("log", "it grows faster than it is read: parts were left out"),)
            self._stream.seek(0, os.SEEK_END)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    def _add(self, ended: Mapping[str, float]) -> None:
        for name, (seconds, tokens) in _ENDED.items():
            if seconds in ended:
                gained = {f"{name}_sum_s": ended[seconds], f"{name}_count": 1.0, tokens: ended[tokens]}
                self._sums |= {key: self._sums.get(key, 0.0) + value for key, value in gained.items()}

    def close(self) -> None:
        self._stream.close()


def _begin(path: Path) -> list[str]:
    """The lines among which a start is: a log is followed for hours, but a server starts at its begin."""
    with path.open("rb") as stream:
        return stream.read(START_BYTES).decode("utf-8", "replace").splitlines()


def open_log(subject: Subject, stop: threading.Event) -> LogReader:
    if subject.log is None:
        raise Unavailable("absent", "no log was named", "add --log FILE")
    try:
        return LogReader(Path(subject.log))
    except OSError as error:
        raise NotYet("denied", f"{subject.log}: {error.strerror}") from error


PROBE = Probe(name="log", rate_hz=1.0, max_share=0.001, metrics=METRICS, open=open_log, max_hz=2.0)
