"""
Unknown noise, and a map of it
==============================

Without `sigma`, `hp.denoise` estimates the noise as `hp.estimate_noise` does. Here it is four times stronger on one
side, so the evidence favours a map, which `hp.denoise` then uses.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data

import heatprior as hp

clean = skimage.data.camera()[:192, 60:252] / 255.0
true = np.broadcast_to(np.linspace(0.04, 0.16, 192), clean.shape)
noisy = clean + true * np.random.default_rng(0).standard_normal(clean.shape)

report = hp.estimate_noise(noisy)
found = hp.estimate_noise(noisy, "map")
denoised = hp.denoise(noisy, report.sigma)  # what hp.denoise(noisy) does by itself
print("kind of noise:", ", ".join(report.models))

# %%
# The map beside the truth. In dense texture the estimate is a little high, since fine texture looks like noise.

figure, axes = plt.subplots(1, 4, figsize=(12, 3.6), layout="constrained")
for panel, image, name in zip(axes, (noisy, denoised), ("noisy", "denoised blindly"), strict=False):
    panel.imshow(image, cmap="gray", vmin=0, vmax=1)
    panel.set_title(name)
for panel, levels, name in zip(axes[2:], (found.sigma, true), ("estimated σ", "true σ"), strict=True):
    shown = panel.imshow(levels, vmin=0, vmax=0.2)
    panel.set_title(name)
figure.colorbar(shown, ax=axes[2:], shrink=0.8)
for panel in axes:
    panel.set_axis_off()
plt.show()
