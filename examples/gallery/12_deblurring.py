"""
Deblurring
==========

The blur is known, the prior is the one that denoises: nothing is trained for it. Pixels beyond the edges have
contributed to the blurred picture and are estimated along with it.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from scipy.ndimage import convolve
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

clean = skimage.data.camera()[80:230, 150:300] / 255.0
kernel = np.eye(9) / 9.0  # motion along the diagonal
blurred = convolve(clean, kernel, mode="reflect") + 0.01 * np.random.default_rng(0).standard_normal(clean.shape)
sharp = hp.restore(blurred, hp.operators.Blur(kernel), 0.01)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.7), layout="constrained")
for panel, image, name in zip(axes, (blurred, sharp, clean), ("blurred", "restored", "clean"), strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=1)
    panel.set_title(name if image is clean else f"{name}, {psnr(clean, image, data_range=1):.1f} dB")
    panel.set_axis_off()
plt.show()
