"""A model whose weights are read from a file: random ones, of a known shape, on an ordinary disk.

    [fault]
    use = "scenarios.workloads.checkpoint"
    shape = "deepseek-r1-distill-qwen-1.5b"
    cold = true                        # the page cache holds nothing of it
    read_bytes_per_s = 300_000_000     # a slower volume; left out: as the disk is. Needs root

The file is made on the first run and kept beside the tiny models; delete it there.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scenarios.workloads import Injection, Unavailable, _cgroup, throttle
from scenarios.workloads.gpu import require_gpu

ROOM_BYTES = 12_000_000_000


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    require_gpu()
    folder = made(str(options["shape"]))
    files = sorted(folder.glob("*.safetensors"))
    with contextlib.ExitStack() as stack:
        prefix: tuple[str, ...] = ()
        if limit := options.get("read_bytes_per_s"):
            throttle.warm_programs()
            group = stack.enter_context(throttle.limited(throttle.disk_of(files[0]), int(limit)))
            prefix = _cgroup.entering(group)
        if options["cold"]:
            throttle.evict(files)
        else:
            _read(files)
        yield Injection(prefix=prefix, model=str(folder))


def made(shape: str) -> Path:
    """The checkpoint's folder, filled by a process of its own where it is missing."""
    from perfdoctor.local import tiny

    folder = tiny.cache_folder("tiny").parent / f"random-{shape}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(folder.parent).free < ROOM_BYTES:
        raise Unavailable(f"needs {ROOM_BYTES / 1e9:.0f} GB of free disk in {folder.parent}")
    command = [sys.executable, "-m", "scenarios.workloads.checkpoint", shape, str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def _read(files: list[Path]) -> None:
    for file in files:
        with file.open("rb") as stream:
            while stream.read(1 << 24):
                pass


def main() -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from perfdoctor.local import models

    source = models.resolve(f"shape:{sys.argv[1]}")
    models.prepare(source)
    assert source.shape is not None
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(**source.shape), torch_dtype=torch.bfloat16
        )
    part = Path(sys.argv[2] + ".part")
    model.save_pretrained(part, max_shard_size="100GB")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source.folder / name, part)
    part.rename(sys.argv[2])


if __name__ == "__main__":
    main()
