"""What `--model` may name, and the sentence for everything it may not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from perfdoctor.errors import ModelError
from perfdoctor.local import models


def refusal(model: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        models.resolve(model)
    error = caught.value
    assert error.what and error.why and error.do
    return error


def copy_of(folder: Path, target: Path) -> Path:
    return Path(shutil.copytree(folder, target / "copy"))


@pytest.mark.parametrize(
    ("name", "preset"), [("tiny", "tiny"), ("tiny:medium", "medium"), ("tiny:small", "small")]
)
def test_tiny_names_a_preset(name: str, preset: str):
    """Nothing is built by resolving."""
    source = models.resolve(name)

    assert (name, preset, False) == (source.name, source.preset, source.weights_random)


def test_an_unknown_preset_names_the_known_ones():
    """The message is the documentation."""
    assert "tiny:medium" in refusal("tiny:huge").why


def test_a_shape_has_random_weights_and_no_weight_files():
    """The tiny model lends its tokenizer."""
    source = models.resolve("shape:deepseek-r1-distill-qwen-1.5b")

    assert source.weights_random
    assert () == source.weight_files()
    assert "tiny" == source.preset


def test_an_unknown_shape_names_the_known_ones():
    """The message is the documentation."""
    assert "shape:deepseek-r1-distill-qwen-1.5b" in refusal("shape:gpt-4").why


@pytest.mark.parametrize("name", list(models.shapes()))
def test_a_shape_has_exactly_its_parameters(name: str):
    """Built without memory on torch's meta device; the head is tied where the shape says so."""
    import torch
    from transformers import AutoModelForCausalLM

    from perfdoctor.local.load import read_config

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(read_config(models.resolve(f"shape:{name}")))

    shape = models.shapes()[name]
    tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert shape["parameters"] == sum(p.numel() for p in model.parameters())
    assert shape["config"]["tie_word_embeddings"] == tied


def test_the_running_example_has_an_untied_head():
    """DeepSeek-R1-Distill-Qwen-1.5B: 1,777,088,000 parameters, embedding and head apart."""
    shape = models.shapes()["deepseek-r1-distill-qwen-1.5b"]

    assert 1_777_088_000 == shape["parameters"]
    assert not shape["config"]["tie_word_embeddings"]


def test_a_model_folder_is_served_under_its_own_name(tiny_folder: Path):
    """With the files whose reading can be watched."""
    source = models.resolve(str(tiny_folder))

    assert ("tiny", None) == (source.name, source.preset)
    assert (tiny_folder / "model.safetensors",) == source.weight_files()


def test_a_missing_folder_is_refused(tmp_path: Path):
    """Also a name that is neither."""
    assert "there is no model folder" in refusal(str(tmp_path / "nowhere")).what


def test_a_folder_without_config_is_no_model(tmp_path: Path):
    """Whatever else it holds."""
    assert "no config.json" in refusal(str(tmp_path)).why


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_config_that_names_no_architecture_is_refused(tmp_path: Path, text: str):
    """Broken JSON, wrong JSON, empty JSON."""
    (tmp_path / "config.json").write_text(text)

    assert "model_type" in refusal(str(tmp_path)).why


def test_a_folder_without_weights_is_refused(tmp_path: Path):
    """A repository cloned without its large files."""
    (tmp_path / "config.json").write_text('{"model_type": "qwen2"}')

    assert "holds no weights" in refusal(str(tmp_path)).what


def test_truncated_weights_are_refused(tiny_folder: Path, tmp_path: Path):
    """Before anything is loaded, with both sizes."""
    folder = copy_of(tiny_folder, tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])

    error = refusal(str(folder))

    assert "model.safetensors is broken" in error.what
    assert "4332328 bytes, the file has 4332327" in error.why


def test_a_missing_shard_is_named(tiny_folder: Path, tmp_path: Path):
    """The index lists two files, one came."""
    folder = copy_of(tiny_folder, tmp_path)
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    assert "lacks b.safetensors" in refusal(str(folder)).what


def test_whole_shards_are_accepted(tiny_folder: Path, tmp_path: Path):
    """In the order of their names."""
    folder = copy_of(tiny_folder, tmp_path)
    shutil.copy(folder / "model.safetensors", folder / "b.safetensors")
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    index = {"weight_map": {"x": "b.safetensors", "y": "a.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    files = models.resolve(str(folder)).weight_files()

    assert ["a.safetensors", "b.safetensors"] == [path.name for path in files]


def test_a_broken_index_is_refused(tiny_folder: Path, tmp_path: Path):
    """It is JSON of the wrong kind."""
    folder = copy_of(tiny_folder, tmp_path)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text("[]")

    assert "index.json is broken" in refusal(str(folder)).what


def test_a_missing_package_says_what_to_install():
    """The extra, not the single package."""
    error = models.make_failure(
        "Traceback\nModuleNotFoundError: No module named 'tokenizers'\n", Path("/c/m")
    )

    assert "run: pip install 'perfdoctor[local]'" == error.do


def test_an_unwritable_cache_says_how_to_move_it():
    """The variable and the folder in use."""
    error = models.make_failure("OSError: [Errno 28] No space left on device", Path("/c/m"))

    assert "No space left" in error.why
    assert "XDG_CACHE_HOME" in error.do and "/c" in error.do
