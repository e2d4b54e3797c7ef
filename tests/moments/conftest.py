"""What the tests of moments share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Path]:
    """One whose other end is open, so that nobody waits for it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR)
    yield path
    os.close(end)
