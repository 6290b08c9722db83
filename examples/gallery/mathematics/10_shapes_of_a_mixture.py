"""
The shapes of a mixture
=======================

A mixture of Gaussians has many bases where the paper's model has one. The axes of a covariance show what it stands
for: an edge of one direction, a texture, a slope. Noise adds σ² to every variance and keeps the axes.
"""

import matplotlib.pyplot as plt
import numpy as np

import heatprior as hp

prior = hp.load("mixture")
weights = np.exp(prior.log_weights).sum(axis=1)
figure, axes = plt.subplots(5, 8, figsize=(8, 5.4), layout="constrained")
for row, k in zip(axes, np.argsort(-weights)[:5], strict=True):
    for panel, axis in zip(row, prior.axes[k], strict=False):
        panel.imshow(axis.reshape(prior.size, prior.size), cmap="gray")
        panel.set(xticks=[], yticks=[])
    row[0].set_ylabel(f"{100 * weights[k]:.1f} %")
figure.suptitle("the five most frequent shapes, their leading axes")
plt.show()

# %%
# Variances of one shape at three noise levels: each is the clean one plus σ².

figure, panel = plt.subplots(figsize=(5, 3.4), layout="constrained")
clean = prior.variances[0] * prior.contrasts[3]
for sigma in (0.0, 0.02, 0.1):
    panel.semilogy(clean + sigma**2, label=f"σ = {sigma:g}")
panel.set(xlabel="axis", ylabel="variance")
panel.legend()
plt.show()
