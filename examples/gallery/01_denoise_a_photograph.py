"""
Denoise a photograph
====================

One call. `sigma` is the standard deviation of the noise in the units of the image, here grey levels from 0 to 1.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

clean = skimage.data.camera()[:256, :256] / 255.0
noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
denoised = hp.denoise(noisy, 0.1)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.7), layout="constrained")
for panel, image, name in zip(axes, (noisy, denoised, clean), ("noisy", "denoised", "clean"), strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=1)
    panel.set_title(name if image is clean else f"{name}, {psnr(clean, image, data_range=1):.1f} dB")
    panel.set_axis_off()
plt.show()
