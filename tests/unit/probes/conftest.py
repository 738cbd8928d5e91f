"""What several probe tests need."""

from __future__ import annotations

import pytest

from perfdoctor.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()
