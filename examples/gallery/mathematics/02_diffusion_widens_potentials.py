"""
Diffusion only widens
=====================

Noise of standard deviation σ on the patch is noise of ‖k‖σ on a response, and a Gaussian mixture under Gaussian noise
gets wider components: σ_j² = σ_0² + ‖k_j‖²σ². Nothing else changes, and so the density is known at every noise level.
"""

import matplotlib.pyplot as plt
import numpy as np

import heatprior as hp

prior = hp.load("patch7")
count, norms = prior.filters.count, prior.filters.norms
response = np.repeat(np.linspace(-1, 1, 401)[:, None], count, axis=1)
shown = np.argsort(norms)[[5, 20, 40]]

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharey=True)
for sigma in (0.0, 0.025, 0.05, 0.1, 0.2):
    potential = -prior.experts.log_density(response, sigma * norms)
    for panel, j in zip(axes, shown, strict=True):
        panel.plot(response[:, j], potential[:, j], label=f"σ = {sigma:g}")
for panel, j in zip(axes, shown, strict=True):
    panel.set(title=f"filter of norm {norms[j]:.2f}", xlabel="response", ylim=(-5, 15))
axes[0].set_ylabel("−log ψ")
axes[0].legend()
plt.show()
