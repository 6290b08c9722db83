"""
Filling in
==========

Three quarters of the pixels are missing: `hp.operators.Mask` says which were seen.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

rng = np.random.default_rng(0)
clean = skimage.data.chelsea()[60:210, 110:260] / 255.0
seen = rng.random(clean.shape[:2]) < 0.25
data = np.where(seen[..., None], clean, 0.0)
filled = hp.restore(data, hp.operators.Mask(seen), 0.01, channel_axis=-1, white=1.0)

figure, axes = plt.subplots(1, 2, figsize=(8, 4.3), layout="constrained")
names = ("a quarter of the pixels", f"filled in, {psnr(clean, filled, data_range=1):.1f} dB")
for panel, image, name in zip(axes, (data, filled), names, strict=True):
    panel.imshow(np.clip(image, 0, 1))
    panel.set_title(name)
    panel.set_axis_off()
plt.show()
