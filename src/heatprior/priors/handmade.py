"""A patch prior made by hand from two facts about natural images: for demonstrations, tests and teaching.

Their power spectrum falls as 1/f², and their responses to cosine filters are sparse: log-density −√|u|, nearly. The
filters of the prior are the discrete cosines, so both facts go straight into the parameters. Only two numbers are left
to choose, CONTRAST and DECAY: they are round values near the best of a coarse grid, by the likelihood of 7×7 patches of
the BSDS500 training images.
"""

from __future__ import annotations

import numpy as np

from heatprior.errors import InvalidInputError
from heatprior.priors.experts import PAPER_COMPONENTS, Experts
from heatprior.priors.filters import FilterBank
from heatprior.priors.patch import PatchPrior

CONTRAST = 0.018  # standard deviation of a response, times its frequency: grey levels in [0, 1] × cycles per pixel
DECAY = 1 / 100  # of the weights over the range [−1, 1]: its ends then lie ten standard deviations out


def dct_prior(size: int) -> PatchPrior:
    """Cosine filters of size×size pixels with experts whose weights fall as w_l ∝ exp(−√(|mu_l| / DECAY)).

    All experts are equal. What differs is the norm of the filters, proportional to their frequency f: it brings
    responses of standard deviation CONTRAST / f to the one width of the experts, which fits the range of their means.
    """
    if size < 2:
        raise InvalidInputError(f"size is {size}; a patch needs at least 2×2 pixels to have any structure")
    means = np.linspace(-1.0, 1.0, PAPER_COMPONENTS)
    experts = Experts(np.tile(-np.sqrt(np.abs(means) / DECAY), (size * size - 1, 1)))
    spread = np.sqrt(experts.weights[0] @ means**2 + experts.base_sigma**2)
    row, column = np.divmod(np.arange(1, size * size), size)
    frequencies = np.hypot(row, column) / (2 * size)
    norms = spread * frequencies / CONTRAST
    card = {
        "name": f"dct{size}",
        "made": "by hand: discrete cosine filters, power spectrum 1/f², weights exp(−√|u|)",
        "tuned": "contrast and decay, on a coarse grid, with patches of the BSDS500 training images",
        "contrast": CONTRAST,
        "decay": DECAY,
    }
    return PatchPrior(FilterBank(norms[:, None] * FilterBank.dct(size).matrix), experts, card)
