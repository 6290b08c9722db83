"""The picture of a training: every loss and every validation, and nothing where there was none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from heatprior.pictures.figures import draw_log

NOWHERE = Path("never-written.png")


@pytest.mark.parametrize("validated", [True, False])
def test_a_log_shows_losses_and_validations(drawn: list[Figure], validated: bool):
    steps, losses = [10.0, 20.0, 30.0], [3.0, 2.0, 1.5]
    psnr = {"15": [np.nan, 28.0, 29.0] if validated else [np.nan] * 3, "25": [np.nan, 26.0, np.nan]}
    shown = psnr if validated else {"15": psnr["15"]}
    rows = [
        {"step": step, "loss": losses[i]} | {f"psnr{level}": values[i] for level, values in shown.items()}
        for i, step in enumerate(steps)
    ]
    draw_log(rows, NOWHERE)
    axes = drawn[0].axes
    assert len(axes) == (2 if validated else 1)
    np.testing.assert_array_equal(axes[0].get_lines()[0].get_xydata(), np.transpose([steps, losses]))
    if validated:
        first, second = axes[1].get_lines()
        np.testing.assert_array_equal(first.get_xydata(), [[20.0, 28.0], [30.0, 29.0]])
        np.testing.assert_array_equal(second.get_xydata(), [[20.0, 26.0]])
        assert [text.get_text() for text in axes[1].get_legend().get_texts()] == ["15", "25"]
