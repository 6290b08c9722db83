"""heatprior in deepinv: a `Denoiser` for its plug-and-play and diffusion samplers, a `Prior` for its optimisers.

    denoiser = heatprior.deepinv.Denoiser("mixture")
    model = deepinv.optim.HQS(data_fidelity=L2(), prior=PnP(denoiser=denoiser), ...)

Needs the extra: pip install 'heatprior[deepinv]'. See docs/torch.md for what is exact and what is not.
"""

from __future__ import annotations

from heatprior.deepinv.denoiser import Denoiser
from heatprior.deepinv.prior import Prior

__all__ = ["Denoiser", "Prior"]
