"""
Several scales
==============

A patch of eight pixels cannot tell a slow shade from slow noise. At half the size it sees twice as far, and the noise
is half as strong. So low frequencies are taken from the image at half, a quarter and an eighth of its size.
`hp.denoise` chooses the number of scales; here it is set by hand.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp
from heatprior.restoration.pipeline import Pipeline

clean = skimage.data.camera()[:256, 128:384] / 255.0
noisy = clean + 0.4 * np.random.default_rng(0).standard_normal(clean.shape)  # strong
results = {"one scale": 1, "two": 2, "four, the default": 4}

figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
axes[0].imshow(noisy, cmap="gray", vmin=0, vmax=1)
axes[0].set_title("noisy")
for panel, (name, scales) in zip(axes[1:], results.items(), strict=True):
    image = Pipeline(hp.load("fast7"), noisy.shape, most_scales=scales).denoise(noisy, 0.4)
    panel.imshow(image, cmap="gray", vmin=0, vmax=1)
    panel.set_title(f"{name}: {psnr(clean, image, data_range=1):.2f} dB")
for panel in axes:
    panel.set_axis_off()
plt.show()
