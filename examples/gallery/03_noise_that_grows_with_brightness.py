"""
Noise that grows with brightness
================================

A camera counts photons: variance = gain · brightness + offset. The two numbers are found from one image by
likelihood, and give a noise level for every pixel.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

gain, offset = 0.02, 0.0005
clean = skimage.data.camera()[100:356, 100:356] / 255.0
noisy = clean + np.sqrt(gain * clean + offset) * np.random.default_rng(0).standard_normal(clean.shape)

report = hp.estimate_noise(noisy, "affine")
blind = hp.denoise(noisy, noise="affine")
one_level = hp.denoise(noisy, noise="constant")
for name, image in {"growing with brightness": blind, "one level": one_level}.items():
    print(f"{name}: {psnr(clean, image, data_range=1):.2f} dB")

# %%
# The estimated level over the brightness, beside the true one.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
axes[0].imshow(noisy, cmap="gray", vmin=0, vmax=1)
axes[1].imshow(blind, cmap="gray", vmin=0, vmax=1)
axes[0].set_title("noisy")
axes[1].set_title("denoised")
for panel in axes[:2]:
    panel.set_axis_off()
grey = np.linspace(0, 1, 100)
axes[2].plot(blind.ravel()[::50], report.sigma.ravel()[::50], ".", markersize=2, label="estimated")
axes[2].plot(grey, np.sqrt(gain * grey + offset), "k", label="true")
axes[2].set(xlabel="brightness", ylabel="σ", xlim=(0, 1), ylim=(0, 0.2))
axes[2].legend()
plt.show()
