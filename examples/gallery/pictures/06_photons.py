"""
Photons under a microscope
==========================

Photon counts have noise that grows with brightness. `hp.denoise` recognises them, stabilises their variance, and goes
back to counts by the exact unbiased inverse. Here at most twenty photons reach a pixel.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

tissue = 255.0 - skimage.data.immunohistochemistry()[100:300, 150:350].mean(axis=-1)  # as if it glowed
truth = 20.0 * tissue / tissue.max()
counts = np.random.default_rng(0).poisson(truth)
denoised = hp.denoise(counts, dtype=np.float32)  # means of counts are not whole numbers
print(hp.estimate_noise(counts))

figure, axes = plt.subplots(1, 2, figsize=(8, 4.3), layout="constrained")
for panel, image, name in zip(axes, (counts, denoised), ("photons", "denoised"), strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=20)
    panel.set_title(f"{name}, {psnr(truth, image, data_range=20):.1f} dB")
    panel.set_axis_off()
plt.show()

# %%
# With the same sigma everywhere, bright parts keep their noise and dark parts lose their detail.

one_level = hp.denoise(counts, noise="constant", dtype=np.float32)
print(f"one level: {psnr(truth, one_level, data_range=20):.1f} dB")
