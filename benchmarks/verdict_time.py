"""`perfdoctor diagnose --model tiny`, from start to verdict. Target: 60 s on 2 cores, once installed.

As a newcomer meets it: the tiny model is made first (into an empty cache), then found there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from benchmarks._ratio import verdict

TARGET_S = 60.0


def wall_s(home: str) -> float:
    env = os.environ | {"XDG_CACHE_HOME": home, "PERFDOCTOR_RUNS": home + "/runs"}
    command = [sys.executable, "-m", "perfdoctor", "diagnose", "--model", "tiny", "--quiet"]
    begin = time.perf_counter()
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    took_s = time.perf_counter() - begin
    assert "\nVerdict " in done.stdout, done.stdout
    return took_s


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        first, again = wall_s(home), wall_s(home)
    print(f"  first run {first:.1f} s, model made on the way; again {again:.1f} s; ratio {first / again:.2f}")
    print(f"  target {TARGET_S:.0f} s: {verdict(first <= TARGET_S)}")


if __name__ == "__main__":
    main()
