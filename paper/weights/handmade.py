"""A patch prior made by hand from two facts about natural images: for demonstrations, tests and teaching.

Their power spectrum falls as 1/f², and their responses to cosine filters are sparse: log-density −√|u|, nearly. The
filters of the prior are the discrete cosines, so both facts go straight into the parameters. Only two numbers are left
to choose, CONTRAST and DECAY: the best of a coarse grid, by the likelihood of patches of the BSDS500 training images
(paper/weights/tune_dct7.py). It is no benchmark: its form was chosen by looking at many images, test images among them.
"""

from __future__ import annotations

import numpy as np

from heatprior.priors.experts import PAPER_COMPONENTS, Experts
from heatprior.priors.filters import FilterBank
from heatprior.priors.patch import PatchPrior

CONTRAST = 0.016  # standard deviation of a response, times its frequency: grey levels in [0, 1] × cycles per pixel
DECAY = 1 / 160  # of the weights over the range [−1, 1]: its ends then lie sixteen standard deviations out


def dct_prior(size: int, contrast: float = CONTRAST, decay: float = DECAY) -> PatchPrior:
    """Cosine filters of size×size pixels with experts whose weights fall as w_l ∝ exp(−√(|mu_l| / decay)).

    All experts are equal. What differs is the norm of the filters, proportional to their frequency f: it brings
    responses of standard deviation contrast / f to the one width of the experts, which fits the range of their means.
    """
    cosines = FilterBank.dct(size).matrix
    means = np.linspace(-1.0, 1.0, PAPER_COMPONENTS)
    experts = Experts(np.tile(-np.sqrt(np.abs(means) / decay), (size * size - 1, 1)))
    spread = np.sqrt(experts.weights[0] @ means**2 + experts.base_sigma**2)
    row, column = np.divmod(np.arange(1, size * size), size)
    frequencies = np.hypot(row, column) / (2 * size)
    norms = spread * frequencies / contrast
    card = {
        "name": f"dct{size}",
        "made": "by hand: discrete cosine filters, power spectrum 1/f², weights exp(−√|u|)",
        "tuned": "contrast and decay, on a coarse grid, with patches of the BSDS500 training images",
        "contrast": contrast,
        "decay": decay,
    }
    return PatchPrior(FilterBank(norms[:, None] * cosines), experts, card)
