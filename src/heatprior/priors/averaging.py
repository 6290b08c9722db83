"""Empirical Bayes with patch averaging (EB-PA, section 4.3): one step that denoises a whole image with a patch prior.

Every patch is replaced by its posterior mean, Eq. (3), and every pixel becomes the mean over the patches that hold it.
The posterior mean acts on each response by itself, so for one noise level it is tabulated once for each expert.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.patch_averaging import ResponseTables, average_changes
from heatprior.priors.patch import PatchPrior

NODES = 1024
BEYOND = 6.0  # widths beyond the outermost mean that the tables reach; further out the posterior mean is straight


def averaged_posterior_mean(prior: PatchPrior, image: FloatArray, sigma: float) -> FloatArray:
    """The image (H, W) after one step at noise level `sigma`, in float32: right to about 1e-5 of full scale."""
    image = np.asarray(image, np.float32)
    return image + average_changes(image, prior.filters.matrix, response_tables(prior, sigma))


def response_tables(prior: PatchPrior, sigma: float) -> ResponseTables:
    """For each expert the change of a response by its posterior mean, over ‖k_j‖², at NODES responses."""
    norms, experts = prior.filters.norms, prior.experts
    tau = norms * sigma
    half = experts.reach + BEYOND * np.hypot(experts.base_sigma, tau)
    responses = np.linspace(-1.0, 1.0, NODES)[:, None] * half  # (nodes, J)
    mean, _ = experts.posterior(responses, np.broadcast_to(tau, responses.shape))
    changes = ((mean - responses) / norms**2).T
    return ResponseTables(
        np.ascontiguousarray(changes, np.float32),
        (-half).astype(np.float32),
        ((NODES - 1) / (2.0 * half)).astype(np.float32),
    )
