"""A model that cannot be served: each cause comes back from the real child as its own ModelError."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

import psutil
import pytest

from perfdoctor.clock import Clock
from perfdoctor.errors import ModelError
from perfdoctor.local import tiny
from perfdoctor.local.launch import launch

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "sound"
    return tiny.write_atomically(tiny.make("tiny"), folder)


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A copy to be spoilt."""
    return Path(shutil.copytree(sound, tmp_path / "model"))


def failure(model: str | Path, timeout_s: float = 120, **options: str) -> ModelError:
    """The error, with the child gone by the time it is raised."""
    pids: list[int] = []
    with pytest.raises(ModelError) as caught:
        launch(
            str(model), Clock(), lambda _: None, lambda _: None,
            on_spawn=pids.append, timeout_s=timeout_s, **options,
        )  # fmt: skip
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    return caught.value


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_folder_that_is_no_model(tmp_path: Path):
    """Found before torch is imported."""
    assert "is no model folder" in failure(tmp_path).what


def test_truncated_weights(folder: Path):
    """Found from the header."""
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])

    assert "is broken" in failure(folder).what


def test_an_unknown_architecture(folder: Path):
    """With the version of transformers that does not know it."""
    edit(folder / "config.json", model_type="brand-new")

    error = failure(folder)

    assert "cannot serve the architecture" in error.what
    assert "pip install -U transformers" in error.do


def test_a_model_that_generates_no_text(folder: Path):
    """transformers knows it, but not as a causal language model."""
    edit(folder / "config.json", model_type="vit")

    assert "cannot serve the architecture" in failure(folder).what


def test_weights_that_lack_a_tensor(folder: Path):
    """A sound file of another model: half of the layers are missing, and no random ones take their place."""
    edit(folder / "config.json", num_hidden_layers=4)

    error = failure(folder)

    assert "are incomplete" in error.what
    assert "model.layers.2" in error.why


def test_a_missing_tokenizer(folder: Path):
    """Says which files to bring."""
    (folder / "tokenizer.json").unlink()

    error = failure(folder)

    assert "no usable tokenizer" in error.what
    assert "tokenizer.json" in error.do


def test_a_device_that_is_not_there(folder: Path):
    """Asked for by the user, absent here."""
    import torch

    if torch.cuda.is_available():
        pytest.skip("has a GPU")

    assert "the model could not be run" in failure(folder, device="cuda").what


def test_torch_that_is_not_installed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An import that fails says what to install."""
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "torch.py").write_text("raise ImportError('no torch here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "shadow"))

    error = failure(folder)

    assert "no torch here" in error.why
    assert "run: pip install 'perfdoctor[local]'" == error.do


def test_a_load_that_takes_too_long(folder: Path):
    """The child is ended, not left behind."""
    assert "not ready after" in failure(folder, timeout_s=0.01).what


def test_a_child_that_dies_without_a_word(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Its exit code and its last line are all there is to tell."""
    monkeypatch.setattr(sys, "executable", "/bin/false")

    assert "exit code 1" in failure(folder).what


def test_the_maker_of_a_tiny_model_ends_with_the_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Ctrl-C while the first tiny model is being made leaves no process behind."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    family: list[psutil.Process] = []

    def on_spawn(pid: int) -> None:
        deadline = time.monotonic() + 60
        while not family and time.monotonic() < deadline:
            family.extend(psutil.Process(pid).children())
            time.sleep(0.02)

    with pytest.raises(ModelError):
        launch("tiny", Clock(), lambda _: None, lambda _: None, on_spawn=on_spawn, timeout_s=0.01)

    assert family, "the child made the model without a process of its own"
    _, alive = psutil.wait_procs(family, 5)
    assert not alive
