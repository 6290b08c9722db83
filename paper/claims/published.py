"""What the paper prints: the figures that measured ones are compared with. Nothing else here knows them."""

from __future__ import annotations

# Table 1, PSNR in dB on BSD68 at 255 sigma = 15, 25, 50, 100: the methods that it compares with,
OTHERS: dict[str, tuple[float, ...]] = {
    "FoE": (30.18, 27.77, 23.29, 16.68),
    "GMM-EPLL": (31.21, 28.72, 25.72, 23.19),
}
OTHERS_PARAMETERS = {"FoE": 648, "GMM-EPLL": 819_200}
# and its own, by the name of the prior here and the method.
TABLE1: dict[str, dict[str, tuple[float, ...]]] = {
    "patch7": {"eb": (30.00, 27.47, 24.61, 22.14), "hqs": (30.37, 28.13, 25.32, 23.07)},
    "patch15": {"eb": (30.34, 27.81, 24.96, 22.74), "hqs": (30.69, 28.39, 25.50, 23.12)},
}
PARAMETERS = {"patch7": 8_352, "patch15": 78_400}

SIGMAS = (0.0, 0.025, 0.05, 0.1, 0.2)  # noise levels of the figures of filters and samples
KAPPAS = (0.005, 0.01, 0.02)  # parts left out on either side, in the figure of discrepancies
SINGLE_SIGMA = 0.02  # at which the comparison model was trained
CHECKERBOARD = (0.1, 0.2)  # noise levels of the squares
SLICE = 0.1  # noise level of the slice in the figure of noise estimation
PROJECTION_STEPS = 3  # B of Algorithm 1
