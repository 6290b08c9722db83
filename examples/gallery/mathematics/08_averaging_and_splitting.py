"""
From patches to images: averaging and splitting
===============================================

A pixel lies in 49 patches, each with a guess of its own. Their average is one step of empirical Bayes, `steps=1`.
Splitting, the default, repeats such steps at falling noise levels and several sizes of the image, and draws the result
back to the data after each.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

clean = skimage.data.camera()[60:220, 150:310] / 255.0
noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
results = {
    "noisy": noisy,
    "averaged patches": hp.denoise(noisy, 0.1, prior="patch7", steps=1),
    "splitting": hp.denoise(noisy, 0.1, prior="patch7"),
    "clean": clean,
}

figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
for panel, (name, image) in zip(axes, results.items(), strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=1)
    panel.set_title(name if image is clean else f"{name}, {psnr(clean, image, data_range=1):.2f} dB", fontsize=10)
    panel.set_axis_off()
plt.show()
