"""
Error bars, and what the image might have been
==============================================

How wrong is the denoised image, and where? One more run of the denoiser estimates that, without the truth. Draws from
the posterior show what the clean image might have looked like; measure anything in each of them for its error bar.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

clean = skimage.data.camera()[80:208, 170:298] / 255.0
noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
found = hp.denoise(noisy, 0.1, return_error=True)
true = psnr(clean, found.pixels, data_range=1)
print(f"PSNR: predicted without the truth {found.predicted.psnr:.2f} dB, true {true:.2f} dB")
within = np.mean(np.abs(found.pixels - clean) < found.error)
print(f"errors within one standard error: {within:.0%} of the pixels")

figure, axes = plt.subplots(1, 2, figsize=(8, 4.3), layout="constrained")
axes[0].imshow(found.pixels, cmap="gray", vmin=0, vmax=1)
axes[1].imshow(found.error, cmap="inferno", vmin=0, vmax=0.1)
for panel, name in zip(axes, ("denoised", "standard error"), strict=True):
    panel.set_title(name)
    panel.set_axis_off()
plt.show()

# %%
# Three clean images that would fit the noisy one.

draws = hp.posterior_samples(noisy, 0.1, 3, rng=np.random.default_rng(1))
figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for panel, image in zip(axes, draws, strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=1)
    panel.set_axis_off()
plt.show()
