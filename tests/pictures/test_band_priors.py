"""The picture of a prior of whole images: one panel for each band, above its potentials."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from whole_images import convolutional_prior, wavelet_prior

import heatprior as hp
from heatprior.pictures import priors
from heatprior.pictures.priors import draw_bands

NOWHERE = Path("never-written.png")


@pytest.mark.parametrize("prior", [convolutional_prior(2, 3), wavelet_prior(2, 2, 1)], ids=["convolutional", "wavelet"])
@pytest.mark.parametrize("most", [None, 2, 1000])
def test_so_many_bands_are_drawn(monkeypatch: pytest.MonkeyPatch, prior: hp.WaveletPrior, most: int | None):
    figures: list[Figure] = []
    monkeypatch.setattr(priors, "save_figure", lambda figure, _: figures.append(figure))
    draw_bands(prior, NOWHERE, most)
    filters = [axes for axes in figures[0].axes if axes.images]
    assert len(filters) == min(most or 1000, prior.bands.count)
    assert [axes.get_title().split("ξ ")[1] for axes in filters] == [f"{xi:.2g}" for xi in prior.norms[: len(filters)]]


def test_no_bands_are_no_picture(tmp_path: Path):
    with pytest.raises(hp.InvalidInputError, match="expected at least one"):
        draw_bands(wavelet_prior(2, 2, 1), tmp_path / "a.png", 0)
