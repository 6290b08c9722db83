"""The same priors as torch modules: differentiable in image, noise level and parameters, on any device.

    import heatprior.torch as ht
    module = ht.load("mixture")            # reads the same files; from_prior(prior) takes one that is loaded
    clean = module.denoise(x, sigma)       # (B, C, H, W)

Needs the extra: pip install 'heatprior[torch]'. See docs/torch.md.
"""

from __future__ import annotations

from heatprior.torch.loading import from_prior, load
from heatprior.torch.mixture import MixtureModule
from heatprior.torch.module import Posterior, PriorModule
from heatprior.torch.patch import PatchModule
from heatprior.torch.wavelet import WaveletModule

__all__ = ["MixtureModule", "PatchModule", "Posterior", "PriorModule", "WaveletModule", "from_prior", "load"]
