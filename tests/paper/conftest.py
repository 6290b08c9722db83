from __future__ import annotations

from pathlib import Path

import pytest
from synthetic import folder_of_images


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder laid out as BSDS500 and BSD68 are, with a few small images."""
    place = tmp_path / "data"
    (place / "bsds500").mkdir(parents=True)
    folder_of_images(place / "bsds500" / "train", 2, (60, 72))
    folder_of_images(place / "bsds500" / "test", 2, (60, 72), seed=1)
    folder_of_images(place / "bsd68", 2, (72, 80), seed=2)
    return place
