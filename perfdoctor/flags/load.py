"""Flags that say how hard a target is driven, and when a load ends."""

from __future__ import annotations

from perfdoctor.flags import values
from perfdoctor.flags._flag import Flag, group

LOAD = group(
    "Load",
    Flag(
        "concurrency",
        "load.concurrency",
        "Users, each waiting for its answer: requests open at a time.",
        kind=int,
        short="-c",
        least=1,
    ),
    Flag("requests", "load.requests", "Stop after this many.", kind=int, short="-n", least=1),
    Flag("duration", "load.duration_s", "Stop after this long.", "30s", read=values.seconds),
    Flag(
        "warmup",
        "load.warmup_requests",
        "Requests sent first and left out of the numbers.",
        kind=int,
        least=0,
    ),
    Flag(
        "warmup_time",
        "load.warmup_s",
        "The same by time; the load goes on without a pause.",
        "5s",
        read=values.seconds_or_zero,
    ),
    Flag(
        "ramp_up",
        "load.ramp_up_s",
        "Start the users over this long.",
        "10s",
        read=values.seconds_or_zero,
    ),
    Flag("seed", "load.seed", "Same seed, same arrivals and prompts.", kind=int, least=0),
    Flag("workers", "load.workers", "Driver processes; chosen by itself.", kind=int, least=1),
)

SHAPE = group(
    "Open loop: requests arrive at a rate, whether or not others are answered",
    Flag(
        "rate",
        "load.rate",
        "Requests a second, a minute (300/min) or an hour.",
        "5/s",
        read=values.rate,
    ),
    Flag(
        "arrival",
        "load.arrival",
        "How they arrive at --rate; poisson unless told otherwise.",
        "constant|poisson|gamma",
        read=values.arrival,
    ),
    Flag(
        "burstiness",
        "load.burstiness",
        "Shape of --arrival gamma: 1 is poisson, below 1 bursts, above 1 is more even.",
        kind=float,
    ),
    Flag(
        "ramp",
        "load.ramp",
        "A rate that changes: a line, or steps as 1/s@10s,5/s@10s.",
        "1/s:20/s:30s",
        read=values.ramp,
    ),
    Flag(
        "replay",
        "load.replay",
        "Send the timestamped requests of a JSONL file.",
        "FILE",
        read=values.existing("--replay"),
    ),
    Flag("replay_speed", "load.replay_speed", "How much faster than recorded.", kind=float),
    Flag(
        "max_in_flight",
        "load.max_in_flight",
        "A request due above it waits, and its lateness is shown.",
        kind=int,
        least=1,
    ),
)

LIMITS = group(
    "Limits",
    Flag("timeout", "load.timeout_s", "Limit of one whole request (2m).", "2m", read=values.seconds),
    Flag(
        "connect_timeout", "load.connect_timeout_s", "Limit of connecting (10s).", "10s", read=values.seconds
    ),
    Flag(
        "idle_timeout",
        "load.idle_timeout_s",
        "Longest silence: before an answer, and inside it.",
        "30s",
        read=values.seconds,
    ),
    Flag(
        "max_error_rate",
        "load.max_error_rate",
        "Stop, and exit with 1, above this share of failures.",
        "10%",
        read=values.share,
    ),
    Flag(
        "drain",
        "load.drain_s",
        "How long open requests may finish at the end (30s).",
        "30s",
        read=values.seconds_or_zero,
    ),
    Flag("deadline", "load.deadline_s", "End of everything, whatever is open.", "10m", read=values.seconds),
)

PROMPTS = group(
    "Prompts",
    Flag(
        "prompt_tokens",
        "load.prompts.input_tokens",
        "Length of the made-up prompts (48), or a distribution of it.",
        "N|'normal(48,12)'",
        read=values.length("--prompt-tokens"),
    ),
    Flag(
        "output_tokens",
        "load.prompts.output_tokens",
        "max_tokens of every request (48), or a distribution of it.",
        "N|'uniform(32,96)'",
        read=values.length("--output-tokens"),
    ),
    Flag(
        "shared_prefix",
        "load.prompts.shared_prefix_tokens",
        "Leading tokens that all made-up prompts have in common.",
        kind=int,
        least=0,
    ),
    Flag("turns", "load.prompts.turns", "Turns of each made-up conversation.", kind=int, least=1),
    Flag(
        "prompts",
        "load.prompts.file",
        "Prompts from a JSONL, CSV or ShareGPT file.",
        "FILE",
        read=values.existing("--prompts"),
    ),
    Flag(
        "tokenizer",
        "load.prompts.tokenizer",
        "Folder with a tokenizer.json: lengths and counts become exact.",
        "FOLDER",
    ),
    Flag(
        "count_per_chunk",
        "load.prompts.count_per_chunk",
        "Ask for token counts in every chunk, so that ITL is known.",
        kind=bool,
        long="--count-per-chunk",
    ),
    Flag("temperature", "load.temperature", "Sampling temperature to ask for.", kind=float),
)

SLO = Flag(
    "slo", "load.slo", "What must hold; exit 1 if not.", "'ttft_p95<500ms,tpot_p95<50ms'", group="Result"
)
SCENARIO = Flag(
    "scenario", None, "Target and load from a TOML file; flags replace its values.", "FILE", group="Target"
)
