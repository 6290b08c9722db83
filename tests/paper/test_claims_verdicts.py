"""Claims are judged by the figures: each verdict can fall either way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control
from synthetic import sparse_prior

from paper.claims import denoising_table, discrepancy, noise_surface, projection, samples
from paper.claims.heat_equation import Mistimed, residual
from paper.claims.published import TABLE1

ROWS = denoising_table.ROWS[:4]
PAPER = np.array([row.published for row in ROWS])


def test_a_cell_that_is_better_or_close_holds_and_a_worse_one_does_not():
    psnr = PAPER + 1.0
    psnr[1] -= 1.054  # 0.05 as printed
    psnr[2, 3] -= 1.06
    checks = denoising_table._checks(ROWS, psnr, is_whole=True)
    assert [check.holds for check in checks] == [True, True, False, True]
    assert "−0.06 dB at 100" in checks[2].measured


def test_few_images_are_not_judged():
    checks = denoising_table._checks(ROWS, PAPER - 9.0, is_whole=False)
    assert {check.holds for check in checks} == {None}
    assert all("68 images" in check.reason for check in checks)


def test_the_table_has_the_published_rows_and_differences():
    table = denoising_table._table(ROWS, PAPER - 0.5, {"patch7": 1, "patch15": 2}, 68, with_published=True)
    rows = [row[:2] for row in table.rows]
    assert ["FoE, as published", "30.18"] in rows
    assert ["patch7, HQS", "29.87"] in rows
    assert ["— the paper", f"{TABLE1['patch7']['hqs'][0]:.2f}"] in rows
    assert ["— difference", "−0.50"] in rows


def test_holm_rejects_no_more_than_it_may_and_no_fewer_than_bonferroni():
    rng = np.random.default_rng(0)
    for _ in range(100):
        p = rng.random((3, 7)) ** 4
        found = samples.rejected(p)
        assert (found >= (p <= 0.05 / p.size)).all()
        assert (found <= (false_discovery_control(p.ravel()).reshape(p.shape) <= 0.05)).all()  # which rejects more
    assert samples.rejected(np.array([0.001, 0.04, 0.03])).tolist() == [True, False, False]


def test_the_lowest_point_of_a_parabola_lies_between_the_points_of_the_grid():
    true = np.array([0.1234, 0.3])
    surface = 5.0 * (noise_surface.ASKED - true[:, None]) ** 2
    np.testing.assert_allclose(noise_surface.lowest(surface), true, atol=0.0002)  # half a step of the fine grid


def test_a_good_estimate_of_noise_holds_and_a_bad_one_does_not():
    errors = np.where(noise_surface.TRUE < noise_surface.WEAK, 0.06, 0.04)
    assert [check.holds for check in noise_surface._checks(errors)] == [True, False]


def test_many_levels_must_be_better_everywhere():
    ratio = np.full((len(discrepancy.SIGMAS), 3), 1.5) * [1.3, 1.2, 1.0]
    ratio[8:] *= 4
    assert [check.holds for check in discrepancy._checks(ratio, "")] == [True, True, True]
    ratio[2, 1] = 0.9
    ratio[3] = 1.4
    ratio[2, 2] = 5.0
    assert [check.holds for check in discrepancy._checks(ratio, "")] == [False, False, False]


def test_a_projection_that_rises_or_is_slow_is_noticed():
    fast = projection.run(np.random.default_rng(0).standard_normal((8, 9)), 30)
    assert projection._rise(fast) <= projection.ROUNDING
    slow = projection.ProjectionRun(np.array([3.0, 2.0, 2.1, 1.0]), np.ones(4))
    assert projection._rise(slow) == pytest.approx(0.1 / 3)
    case = {"excess_after_B": [slow.excess()[2]], "to_limit_after_B": [1.0], "largest_relative_rise": 0.03}
    assert [check.holds for check in projection._checks({"cases": {"slow": case}})] == [False, False]


@pytest.mark.parametrize("sigma", [0.02, 0.3])
def test_a_prior_solves_the_heat_equation_and_a_mistimed_one_does_not(sigma):
    prior = sparse_prior()
    y = prior.sample(5, sigma, rng=np.random.default_rng(0))
    assert residual(prior, y, sigma) < 1e-6
    assert residual(Mistimed(prior), y, sigma) > 1e-3
    assert residual(Mistimed(prior), y, sigma, normalised=False) > 1e-3


def test_a_normaliser_that_changes_with_time_is_forgiven_only_where_it_is_not_known():
    class Unnormalised:
        def log_prob(self, y, sigma):
            return prior.log_prob(y, sigma) + 7.0 / np.asarray(sigma)

        def score(self, y, sigma):
            return prior.score(y, sigma)

    prior = sparse_prior()
    y = prior.sample(5, 0.1, rng=np.random.default_rng(0))
    assert residual(Unnormalised(), y, 0.1) > 0.1
    assert residual(Unnormalised(), y, 0.1, normalised=False) < 1e-6
