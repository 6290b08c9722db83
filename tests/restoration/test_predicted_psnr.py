"""The PSNR without the truth: the true one within its error, and none where the noise is not what was told."""

import numpy as np
import pytest
import skimage.data

import heatprior as hp
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.priors.schedules import TableOverSigma
from heatprior.restoration.error_bars import (
    RISK_COLUMNS,
    RISK_ENTRY,
    Ingredients,
    Probe,
    predict_psnr,
    probe,
    read_risk_table,
)

SHAPE = (120, 130)
SIGMA = 0.1
SIGNAL = np.where(np.arange(SHAPE[1]) < SHAPE[1] // 2, 0.02, 0.2)  # standard deviation of the clean image, by column
LEVELS = np.broadcast_to(np.array(SIGMA), SHAPE)
# Of independent Gaussian pixels the risk of the posterior mean is the trace, and there is no structure.
POSTERIOR = TableOverSigma((1.0,), ((1.0,), (0.0,), (1.0,), (0.0,), (0.02,)))


def wiener(noisy):
    """The posterior mean of independent Gaussian pixels of mean zero."""
    return noisy * SIGNAL**2 / (SIGNAL**2 + SIGMA**2)


def trial(seed, denoiser=wiener, sigma=SIGMA):
    """The true PSNR, and what it is foretold from."""
    rng = np.random.default_rng(seed)
    clean = SIGNAL * rng.standard_normal(SHAPE)
    noisy = clean + sigma * rng.standard_normal(SHAPE)
    denoised = denoiser(noisy)
    found = probe(denoiser, noisy, denoised, SIGMA * rng.choice([-1.0, 1.0], SHAPE))
    return -10.0 * np.log10(np.mean((denoised - clean) ** 2)), Ingredients.of(noisy - denoised, found)


@pytest.mark.parametrize(
    ("denoiser", "table"),
    [(wiener, None), (wiener, POSTERIOR), (lambda y: 0.5 * y, None), (lambda y: np.clip(y, -0.1, 0.1), None)],
)
def test_the_predicted_psnr_is_the_true_one_within_its_error(denoiser, table):
    deviations = []
    for seed in range(8):
        true, parts = trial(seed, denoiser)
        quality = predict_psnr(parts, LEVELS, 1.0, table=table)
        assert quality.stderr < 0.3
        deviations.append((quality.psnr - true) / quality.stderr)
    assert np.abs(deviations).max() < 4.0
    assert abs(np.mean(deviations)) < 4.0 / np.sqrt(len(deviations))


def test_both_estimates_together_have_less_error_than_either():
    parts = trial(0)[1]
    both, stein = (predict_psnr(parts, LEVELS, 1.0, table=table).stderr for table in (POSTERIOR, None))
    assert both < min(stein, 10.0 * np.log10(1.02))


def test_it_is_not_the_true_one_if_the_noise_is_another():
    true, parts = trial(0, sigma=1.3 * SIGMA)
    quality = predict_psnr(parts, LEVELS, 1.0)
    assert abs(quality.psnr - true) > 4.0 * quality.stderr


@pytest.mark.parametrize("factor", [0.8, 1.3])
def test_estimates_that_contradict_each_other_foretell_nothing(factor):
    parts = trial(0, sigma=factor * SIGMA)[1]
    assert np.isnan(predict_psnr(parts, LEVELS, 1.0, table=POSTERIOR)).all()
    assert np.isfinite(predict_psnr(trial(0)[1], LEVELS, 1.0, table=POSTERIOR)).all()


@pytest.mark.parametrize("table", [None, POSTERIOR])
def test_noise_that_is_known_to_be_taken_for_too_strong_is_put_right(table):
    """Both estimates are straight in the variance of the noise; without being told, the PSNR is another one."""
    rng = np.random.default_rng(0)
    noisy = SIGNAL * rng.standard_normal(SHAPE) + SIGMA * rng.standard_normal(SHAPE)
    found, more = probe(wiener, noisy, wiener(noisy), SIGMA * rng.choice([-1.0, 1.0], SHAPE)), np.sqrt(1.02)
    right, wrong = (Ingredients.of(noisy - wiener(noisy), Probe(*(s * x for x in found))) for s in (1.0, more))
    true = predict_psnr(right, LEVELS, 1.0, table=table).psnr
    told = predict_psnr(wrong, more * LEVELS, 1.0, table=table, excess=0.02 / 1.02).psnr
    assert told == pytest.approx(true, abs=0.003)
    assert abs(predict_psnr(wrong, more * LEVELS, 1.0, table=table).psnr - true) > 0.02


def test_where_a_spectrum_is_in_doubt_the_learnt_estimate_stands_alone():
    """More was removed than the noise explains, which only Stein's estimate sees; without a doubt it counts."""
    parts = trial(0)[1]
    more = parts._replace(removed=1.01 * parts.removed)
    for doubt, same in ((0.4, True), (0.0, False)):
        found = [predict_psnr(one, LEVELS, 1.0, table=POSTERIOR, doubt=doubt, alike=1.5).psnr for one in (parts, more)]
        assert (found[0] == found[1]) is same
    white = [predict_psnr(one, LEVELS, 1.0, table=POSTERIOR, doubt=0.4).psnr for one in (parts, more)]
    assert white[0] != white[1]


def test_a_doubt_about_the_noise_widens_the_error_and_favours_the_estimate_that_it_moves_less():
    parts = trial(0)[1]
    sure, unsure = (predict_psnr(parts, LEVELS, 1.0, table=POSTERIOR, doubt=doubt) for doubt in (0.0, 0.02))
    assert unsure.stderr > sure.stderr
    alone = predict_psnr(parts, LEVELS, 1.0, doubt=0.02)
    assert unsure.stderr < alone.stderr


def test_a_map_of_one_level_is_that_level():
    parts = trial(0)[1]
    one, each = (predict_psnr(parts, levels, 1.0, table=POSTERIOR) for levels in (LEVELS, np.array(LEVELS)))
    np.testing.assert_allclose(one, each, rtol=1e-6)


def test_missing_pixels_have_no_influence():
    rng = np.random.default_rng(0)
    removed, drawn, answer = (rng.standard_normal(SHAPE) for _ in range(3))
    gap = np.arange(SHAPE[1]) < 3
    for values in (removed, answer):
        values[:, gap] = np.nan
    found = predict_psnr(Ingredients.of(removed, Probe(drawn, 0.3 * answer)), np.ones(SHAPE), 1.0)
    inside = (slice(None), ~gap)
    expected = predict_psnr(
        Ingredients.of(removed[inside], Probe(drawn[inside], 0.3 * answer[inside])), np.array(1.0), 1.0
    )
    np.testing.assert_allclose(found, expected)
    with pytest.raises(InvalidInputError, match="every pixel"):
        predict_psnr(Ingredients.of(removed, Probe(drawn, np.full(SHAPE, np.nan))), np.ones(SHAPE), 1.0)


def test_nothing_is_foretold_of_noise_that_was_clipped():
    """Saved in eight bits the noise of black and white pixels is half gone; the same noise in floats is what it was."""
    clean = skimage.data.camera()[100:228, 150:278].astype(np.float32)
    noisy = clean + 25 * np.random.default_rng(0).standard_normal(clean.shape).astype(np.float32)
    options = {"quality": "fast", "white": 255.0}
    whole = hp.denoise(noisy, 25, return_error=True, **options).predicted
    true = 20 * np.log10(255 / np.sqrt(np.mean((hp.denoise(noisy, 25, **options) - clean) ** 2)))
    assert abs(whole.psnr - true) < 4 * whole.stderr
    assert np.isnan(hp.denoise(np.clip(noisy, 0, 255), 25, return_error=True, **options).predicted).all()


@pytest.mark.parametrize("column", [0, 1, 5])
def test_a_card_that_makes_no_sense_is_refused(column):
    table = {name: [0.1, 0.2] for name in RISK_COLUMNS}
    assert read_risk_table({RISK_ENTRY: {"hqs": table}}, "hqs") is not None
    assert read_risk_table({RISK_ENTRY: {"hqs": table}}, "eb") is read_risk_table({}, "hqs") is None
    for wrong in ([0.1], [0.1, np.nan], [0.1, "a"], [0.2, 0.1] if column == 0 else [[0.1], [0.2]]):
        with pytest.raises(PriorFileError, match=RISK_ENTRY):
            read_risk_table({RISK_ENTRY: {"hqs": {**table, RISK_COLUMNS[column]: wrong}}}, "hqs")
