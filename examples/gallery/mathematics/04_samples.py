"""
Exact samples
=============

Draws of noisy patches at any noise level, independent and exact: no chain, no steps. Brightness is not modelled, so
mid-grey is zero.
"""

import matplotlib.pyplot as plt
import numpy as np

import heatprior as hp


def sheet(patches, across=8):
    """Square patches (n, b·b) side by side, with a gap."""
    size = int(np.sqrt(patches.shape[1]))
    tiles = np.pad(patches.reshape(-1, across, size, size), ((0, 0), (0, 0), (0, 1), (0, 1)))
    return tiles.swapaxes(1, 2).reshape(-1, across * (size + 1))


rng = np.random.default_rng(0)
figure, axes = plt.subplots(2, 3, figsize=(9, 6.4), layout="constrained")
for row, name in zip(axes, ("patch7", "mixture"), strict=True):
    prior = hp.load(name)
    for panel, sigma in zip(row, (0.0, 0.05, 0.2), strict=True):
        patches = prior.sample(64, sigma, rng=rng)
        white = np.quantile(np.abs(patches), 0.995)
        panel.imshow(sheet(patches), cmap="gray", vmin=-white, vmax=white)
        panel.set_title(f"{name}, σ = {sigma:g}")
        panel.set_axis_off()
plt.show()

# %%
# Whole images can be drawn too, from the exact density on an orthonormal wavelet basis.

images = hp.load("wavelet-density").sample(2, rng=rng, shape=(128, 128))
figure, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
for panel, image in zip(axes, images, strict=True):
    panel.imshow(image, cmap="gray")
    panel.set_axis_off()
plt.show()
