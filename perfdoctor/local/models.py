"""What `--model` names: a tiny model, a shape with random weights, or a folder. Knows no torch.

Whatever can be wrong with a folder and seen without loading it is found here, in milliseconds.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from perfdoctor.errors import ModelError
from perfdoctor.local import tiny
from perfdoctor.local.weights_file import file_fault

INSTALL = "pip install 'perfdoctor[local]'"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model comes from. `folder` holds its tokenizer, and its weights unless `shape` is given."""

    name: str  # as served by /v1/models
    folder: Path
    preset: str | None = None  # a tiny model: `folder` may not exist until `prepare`
    shape: dict[str, Any] | None = field(default=None, hash=False)  # transformers' configuration fields

    @property
    def weights_random(self) -> bool:
        return self.shape is not None

    def weight_files(self) -> tuple[Path, ...]:
        """The files that loading will read, empty for a shape."""
        return () if self.shape else _weight_files(self.folder)


def resolve(model: str) -> Source:
    """The source a name stands for; ModelError when there is none. Builds nothing."""
    kind, _, name = model.partition(":")
    if kind == "tiny":
        return _tiny(model, name or "tiny")
    if kind == "shape":
        return _shape(model, name)
    return _folder(Path(model))


def look(model: str) -> None:
    """Raises the ModelError that can be foreseen: no such model, or nothing installed to run one. Fast."""
    resolve(model)
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            raise not_installed(f"{package} is not installed")


def prepare(source: Source) -> None:
    """Makes a missing tiny model, in a process of its own so that the server's memory stays clean."""
    if source.preset is None or tiny.is_complete(source.folder):
        return
    command = [sys.executable, "-m", "perfdoctor.local.tiny"]
    command += ["--out", str(source.folder), "--preset", source.preset]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise make_failure(done.stderr, source.folder)


def make_failure(stderr: str, folder: Path) -> ModelError:
    """The error that the last line of the maker's traceback stands for."""
    last = stderr.strip().rpartition("\n")[2]
    if last.startswith(("ModuleNotFoundError", "ImportError")):
        return not_installed(last)
    do = f"free space or set XDG_CACHE_HOME to a writable folder (now: {folder.parent})"
    return ModelError("the tiny model could not be made", last, do)


def not_installed(why: object) -> ModelError:
    return ModelError("a local model needs torch and transformers", str(why), f"run: {INSTALL}")


def shapes() -> dict[str, dict[str, Any]]:
    """The entries of data/shapes.toml by name: {source, parameters, config}."""
    text = (files("perfdoctor") / "data" / "shapes.toml").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = msgspec.toml.decode(text)
    return found


def _tiny(model: str, preset: str) -> Source:
    if preset not in tiny.PRESETS:
        known = ", ".join(f"tiny:{name}" for name in tiny.PRESETS)
        raise ModelError(f"there is no model '{model}'", f"known are {known}", "choose one of these")
    return Source(name=model, folder=tiny.cache_folder(preset), preset=preset)


def _shape(model: str, name: str) -> Source:
    known = shapes()
    if name not in known:
        names = ", ".join(f"shape:{entry}" for entry in known)
        do = "choose one of these, or give a model folder"
        raise ModelError(f"there is no shape '{name}'", f"known are {names}", do)
    return Source(model, tiny.cache_folder("tiny"), preset="tiny", shape=known[name]["config"])


def _folder(folder: Path) -> Source:
    do = "give a folder in Hugging Face format, or `tiny`, or `shape:NAME`"
    if not folder.is_dir():
        raise ModelError(f"there is no model folder '{folder}'", "the path does not exist or is a file", do)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        model_type = config["model_type"]
    except FileNotFoundError as error:
        raise ModelError(f"'{folder}' is no model folder", "it holds no config.json", do) from error
    except (ValueError, KeyError, TypeError, OSError) as error:
        why = "its config.json cannot be read or names no model_type"
        raise ModelError(f"'{folder}' is no model folder", why, do) from error
    _check_weights(folder, model_type)
    return Source(name=folder.resolve().name, folder=folder)


def _check_weights(folder: Path, model_type: str) -> None:
    do = f"download the {model_type} weights again, completely"
    found = _weight_files(folder)
    if not found:
        raise ModelError(f"'{folder}' holds no weights", "no *.safetensors and no pytorch_model*.bin", do)
    for path in found:
        if not path.is_file():
            raise ModelError(f"'{folder}' lacks {path.name}", "its index lists this file", do)
        fault = file_fault(path) if path.suffix == ".safetensors" else None
        if fault:
            raise ModelError(f"{path} is broken", f"{fault}; a copy or download broke off", do)


def _weight_files(folder: Path) -> tuple[Path, ...]:
    """In the order transformers looks: one file, then the shards of an index. Listed ones may be missing."""
    for stem, suffix in (("model", "safetensors"), ("pytorch_model", "bin")):
        if (folder / f"{stem}.{suffix}").is_file():
            return (folder / f"{stem}.{suffix}",)
        index = folder / f"{stem}.{suffix}.index.json"
        if index.is_file():
            return tuple(folder / name for name in _indexed(index))
    return ()


def _indexed(index: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        what = f"{index} is broken"
        raise ModelError(what, "it is no JSON with a weight_map", "download the model again") from error
