"""The tiny model, made once for all tests of the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdoctor.local import tiny


@pytest.fixture(scope="session")
def tiny_model() -> tiny.TinyModel:
    return tiny.make("tiny")


@pytest.fixture(scope="session")
def tiny_folder(tiny_model: tiny.TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_atomically(tiny_model, tmp_path_factory.mktemp("models") / "tiny")
