"""
Filling in
==========

Three quarters of the pixels were never seen. `hp.operators.Mask` says which were.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

rng = np.random.default_rng(0)
clean = skimage.data.camera()[80:230, 150:300] / 255.0
seen = rng.random(clean.shape) < 0.25
data = np.where(seen, clean + 0.01 * rng.standard_normal(clean.shape), 0.0)
filled = hp.restore(data, hp.operators.Mask(seen), 0.01)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.7), layout="constrained")
names = ("a quarter of the pixels", f"restored, {psnr(clean, filled, data_range=1):.1f} dB", "clean")
for panel, image, name in zip(axes, (data, filled, clean), names, strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=1)
    panel.set_title(name)
    panel.set_axis_off()
plt.show()
