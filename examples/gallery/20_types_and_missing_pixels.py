"""
Any type, and missing pixels
============================

8 bits, 16 bits or floats: the result has the type and the units of the image, and `sigma` is in those units too.
`white` says which value is full scale where the type does not. NaN pixels are missing: they have no influence, and
stay NaN.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data

import heatprior as hp

rng = np.random.default_rng(0)
coins = skimage.data.coins()[:200, :200]
noisy = coins + 20 * rng.standard_normal(coins.shape)
versions = {
    "8 bits": (np.clip(noisy, 0, 255).astype(np.uint8), 20, None),
    "12 bits in 16": (np.clip(16 * noisy, 0, 4095).astype(np.uint16), 320, 4095),
    "floats from 0 to 1": ((noisy / 255).astype(np.float32), 20 / 255, None),
}
for name, (image, sigma, white) in versions.items():
    result = hp.denoise(image, sigma, white=white)
    print(f"{name}: {result.dtype}, from {result.min():.4g} to {result.max():.4g}")

# %%
# A detector with a dead corner and dead columns.

broken = noisy / 255
broken[:40, :60] = np.nan
broken[:, 120:123] = np.nan
denoised = hp.denoise(broken, 20 / 255)

figure, axes = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
for panel, image, name in zip(axes, (broken, denoised), ("noisy, with gaps", "denoised"), strict=True):
    panel.imshow(np.ma.masked_invalid(image), cmap="gray", vmin=0, vmax=1)
    panel.set_facecolor("tab:orange")
    panel.set(title=name, xticks=[], yticks=[])
plt.show()
