"""Every result and every prior is one line, and in notebooks that line with a small picture."""

import numpy as np
import pytest

import heatprior as hp
from heatprior.display import format_full_scale, format_level
from heatprior.zoo import names

LONGEST = 400
NOISY = (0.5 + 0.1 * np.random.default_rng(0).standard_normal((64, 72))).astype(np.float32)


def results():
    report = hp.estimate_noise(NOISY)
    yield report
    yield from report.channels
    yield hp.estimate_noise(NOISY, "map")
    yield hp.estimate_sigma(NOISY)
    yield hp.denoise(NOISY, 0.1, quality="fast", return_error=True)
    yield hp.surprise(NOISY, 0.1)
    yield hp.load("patch7").posterior(np.zeros((3, 49)), 0.1)
    yield hp.NoiseProfile.measure(NOISY)
    yield hp.NoiseProfile.measure(NOISY).channels[0]
    yield hp.PoissonGaussian(2.0, 3.0)
    yield hp.TrainingConfig()
    yield hp.MixtureConfig()
    yield hp.FilterBank.dct(7)
    yield hp.Experts(np.zeros((48, 125)))
    yield hp.operators.Blur(np.ones((31, 31)))
    yield hp.operators.Downsample(4)
    yield hp.operators.Mask(NOISY > 0.4)
    yield hp.operators.Fourier(NOISY > 0.4)


def priors():
    return [hp.load(name) for name in names()]


@pytest.mark.parametrize("value", [*results(), *priors()], ids=lambda value: type(value).__name__)
def test_everything_prints_as_one_line(value):
    assert "\n" not in repr(value)
    assert len(repr(value)) < LONGEST
    assert "array(" not in repr(value)
    if hasattr(value, "_repr_html_"):
        assert len(value._repr_html_()) < 60_000


@pytest.mark.parametrize("prior", priors(), ids=names())
def test_priors_show_their_filters_in_notebooks(prior):
    assert "<img" in prior._repr_html_()
    assert prior.card["name"] in prior._repr_html_()


def test_a_report_of_noise_that_varies_shows_its_map():
    assert "<img" in hp.estimate_noise(NOISY, "map")._repr_html_()
    assert "<img" not in hp.estimate_noise(NOISY, "constant")._repr_html_()


def test_what_a_file_says_is_no_markup():
    prior = hp.load("patch7")
    named = hp.PatchPrior(prior.filters, prior.experts, {"name": "<script>\n"})
    assert "<script>" not in named._repr_html_()
    assert "\n" not in repr(named)


def test_levels_have_three_digits_and_no_powers_of_ten():
    assert [format_level(x) for x in (14.82, 10.0, 145.2, 65535.0, 0.0)] == ["14.8", "10.0", "145", "65535", "0"]
    assert [format_full_scale(x) for x in (255.0, 1.0, 65535.0)] == ["255", "1", "65535"]
