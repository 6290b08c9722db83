"""
Denoise a photograph
====================

One call: the noise is estimated. `channel_axis` names the axis of the colours; the result has the type of the image.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

clean = skimage.data.chelsea()[20:220, 80:280]
noise = 30 * np.random.default_rng(0).standard_normal(clean.shape)
noisy = np.clip(clean + noise, 0, 255).astype(np.uint8)
denoised = hp.denoise(noisy, channel_axis=-1)  # uint8 in, uint8 out
print(hp.estimate_noise(noisy, channel_axis=-1))

figure, axes = plt.subplots(1, 2, figsize=(8, 4.3), layout="constrained")
for panel, image, name in zip(axes, (noisy, denoised), ("noisy", "denoised"), strict=True):
    panel.imshow(image)
    panel.set_title(f"{name}, {psnr(clean, image):.1f} dB")
    panel.set_axis_off()
plt.show()
