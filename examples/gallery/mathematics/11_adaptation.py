"""
A prior that adapts to the image
================================

A mixture of Gaussians can be fitted to the noisy image itself, without any clean pixel: its likelihood under noise is
exact. That pays where an image repeats a pattern that photographs lack, like this wall of bricks.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

clean = skimage.data.brick()[:192, :192] / 255.0
noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
adapted = hp.adapt("mixture", noisy, 0.1)  # a prior like any other: save it, use it again
results = {
    "noisy": noisy,
    "natural images": hp.denoise(noisy, 0.1, prior="mixture"),
    "adapted": hp.denoise(noisy, 0.1, prior=adapted),
    "clean": clean,
}

figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
for panel, (name, image) in zip(axes, results.items(), strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=1)
    panel.set_title(name if image is clean else f"{name}: {psnr(clean, image, data_range=1):.2f} dB")
    panel.set_axis_off()
plt.show()
