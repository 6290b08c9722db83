"""
Hot and missing pixels
======================

A telescope's image of galaxies with two dead columns (NaN) and thirty hot pixels. NaN pixels have no influence, and
stay NaN; hot pixels are found and filled in.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data

import heatprior as hp

rng = np.random.default_rng(0)
sky = skimage.data.hubble_deep_field()[300:500, 480:680].mean(axis=-1)
image = 3.0 * sky + 200 + 30 * rng.standard_normal(sky.shape)  # in any units
image[:, 120:122] = np.nan
image[rng.integers(0, 200, 30), rng.integers(0, 200, 30)] = 3000
denoised = hp.denoise(image)
print(hp.estimate_noise(image))

figure, axes = plt.subplots(1, 2, figsize=(8, 4.3), layout="constrained")
for panel, shown, name in zip(axes, (image, denoised), ("as observed", "denoised"), strict=True):
    panel.imshow(np.ma.masked_invalid(shown), cmap="magma", vmin=180, vmax=700)
    panel.set_facecolor("tab:blue")
    panel.set(title=name, xticks=[], yticks=[])
plt.show()
