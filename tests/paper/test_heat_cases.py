"""The measurement of docs/math.md: patch and wavelet priors are exact, tilings are not, and the finer the less."""

from paper.claims.heat_cases import heat_defects


def test_patch_and_wavelet_priors_solve_the_heat_equation_and_tilings_do_not():
    """At sigma = 0.3: finite differences leave 1e-8, rounding 1e-12; the figures of docs/math.md hold to 30 %."""
    found = {name: defects[0] for name, defects in heat_defects(samples=200, sigmas=(0.3,)).items()}
    for name in ("patch, 2×2 pixels", "wavelet, 2×2 pixels"):
        assert found[name].residual < 1e-8
        assert found[name].total_variation < 1e-12
        assert found[name].divergence < 1e-12
    two, one_band, two_bands, three_bands = (defect for name, defect in found.items() if "convolutional" in name)
    assert 0.7 < two.residual / 0.12 < 1.3
    assert 0.7 < two.total_variation / 0.022 < 1.3
    assert one_band.residual < two_bands.residual < three_bands.residual
    assert one_band.total_variation < two_bands.total_variation < three_bands.total_variation
