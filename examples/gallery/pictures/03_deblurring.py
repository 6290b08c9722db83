"""
Deblurring
==========

The blur is known, and the prior is the one that denoises: nothing is trained for it. Pixels beyond the edges
contributed to the blurred picture, and are estimated along with it.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from scipy.ndimage import convolve
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

clean = skimage.data.astronaut()[20:170, 150:300]
kernel = np.eye(9) / 9.0  # motion along the diagonal
blurred = convolve(clean.astype(float), kernel[..., None], mode="reflect")
blurred += 2 * np.random.default_rng(0).standard_normal(clean.shape)
sharp = hp.restore(blurred, hp.operators.Blur(kernel), 2, channel_axis=-1, white=255)

figure, axes = plt.subplots(1, 2, figsize=(8, 4.3), layout="constrained")
for panel, image, name in zip(axes, (blurred, sharp), ("moved and noisy", "restored"), strict=True):
    panel.imshow(np.clip(image, 0, 255).astype(np.uint8))
    panel.set_title(f"{name}, {psnr(clean, image, data_range=255):.1f} dB")
    panel.set_axis_off()
plt.show()
