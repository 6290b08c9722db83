"""
Noise of a camera
=================

Demosaicing and compression correlate the noise of neighbouring pixels, so that hardly any is left at the highest
frequencies, where white noise is told from image. What the flattest parts of the picture hold, at several sizes, tells
which level of white noise stands for it best. Here a photograph gets noise that was smoothed as cameras do.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
import skimage.metrics
from scipy.ndimage import gaussian_filter

import heatprior as hp

clean = skimage.data.astronaut()[:256, 100:356]
smooth = gaussian_filter(np.random.default_rng(0).standard_normal(clean.shape), (0.8, 0.8, 0))
noisy = np.clip(np.rint(clean + 14 * smooth / smooth.std()), 0, 255).astype(np.uint8)

report = hp.estimate_noise(noisy, channel_axis=-1)
denoised = hp.denoise(noisy, channel_axis=-1)
as_white = hp.denoise(noisy, hp.estimate_sigma(noisy, channel_axis=-1).sigma, channel_axis=-1)
print(report)

# %%
# Taken for white noise it is hardly seen, and stays.

psnr = skimage.metrics.peak_signal_noise_ratio
names = ("noisy", "as white noise", "camera noise")
figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
for panel, image, name in zip(axes, (noisy, as_white, denoised), names, strict=False):
    panel.imshow(image[40:168, 60:188])
    panel.set_title(f"{name}, {psnr(clean, image):.1f} dB")
axes[3].imshow(clean[40:168, 60:188])
axes[3].set_title("clean")
for panel in axes:
    panel.set_axis_off()
plt.show()
