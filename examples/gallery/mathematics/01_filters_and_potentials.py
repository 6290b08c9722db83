"""
What a prior has learnt: filters and potentials
===============================================

`patch7` is the model of the paper: 48 orthogonal filters on patches of 7×7 pixels, and for the response of each a
mixture of 125 Gaussians. Its potential is minus the logarithm of that mixture.
"""

import matplotlib.pyplot as plt
import numpy as np

import heatprior as hp

prior = hp.load("patch7")
order = np.argsort(prior.filters.norms)[:: prior.filters.count // 8][:6]
response = np.linspace(-1, 1, 401)
potentials = -prior.experts.log_density(np.repeat(response[:, None], prior.filters.count, axis=1), 0.0)

figure, axes = plt.subplots(2, 6, figsize=(11, 3.8), layout="constrained")
for (above, below), j in zip(axes.T, order, strict=True):
    above.imshow(prior.filters.matrix[j].reshape(7, 7), cmap="gray")
    above.set_axis_off()
    above.set_title(f"‖k‖ = {prior.filters.norms[j]:.2f}", fontsize=9)
    below.plot(response, potentials[:, j])
    below.set(ylim=(-5, 12), xlabel="response")
axes[1, 0].set_ylabel("−log ψ")
plt.show()

# %%
# The filters are orthogonal: their products are zero but for rounding.

gram = prior.filters.matrix @ prior.filters.matrix.T
print(f"largest product of two different filters: {np.abs(gram - np.diag(np.diag(gram))).max():.1e}")
