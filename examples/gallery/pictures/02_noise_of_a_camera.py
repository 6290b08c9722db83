"""
Noise of a camera
=================

A camera smooths and compresses its noise, so that little of it is left at high frequencies, where white noise is
measured. heatprior examines the flattest parts of the picture at several sizes and chooses the sigma that removes the
noise best. Here a photograph gets noise that is smoothed as by a camera.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from scipy.ndimage import gaussian_filter
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

clean = skimage.data.coffee()[60:260, 180:380]
smooth = gaussian_filter(np.random.default_rng(0).standard_normal(clean.shape), (0.8, 0.8, 0))
noisy = np.clip(np.rint(clean + 14 * smooth / smooth.std()), 0, 255).astype(np.uint8)

denoised = hp.denoise(noisy, channel_axis=-1)
print(hp.estimate_noise(noisy, channel_axis=-1))

figure, axes = plt.subplots(1, 2, figsize=(8, 4.3), layout="constrained")
for panel, image, name in zip(axes, (noisy, denoised), ("noise of a camera", "denoised"), strict=True):
    panel.imshow(image)
    panel.set_title(f"{name}, {psnr(clean, image):.1f} dB")
    panel.set_axis_off()
plt.show()

# %%
# Taken for white noise it is underestimated, and most of it stays.

level = hp.estimate_sigma(noisy, channel_axis=-1).sigma
print("sigma as white noise:", level.round(1))
print(f"denoised with that: {psnr(clean, hp.denoise(noisy, level, channel_axis=-1)):.1f} dB")
