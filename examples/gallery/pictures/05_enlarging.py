"""
Enlarging
=========

Many large pictures become this one when reduced. `hp.operators.Downsample` reduces as most programs do; the prior
chooses among the pictures that fit.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.metrics import peak_signal_noise_ratio as psnr
from skimage.transform import resize

import heatprior as hp

clean = skimage.data.camera()[80:224, 150:294] / 255.0
operator = hp.operators.Downsample(3)
small = operator.on((48, 48))
# edges are unknown, so the image that belongs to 48×48 pixels is a little larger than 144×144
margins = [(part.start, total - part.stop) for part, total in zip(small.inside, small.image_shape, strict=True)]
y = small.forward(np.pad(clean, margins, mode="reflect")) + 0.01 * np.random.default_rng(0).standard_normal((48, 48))
large = hp.restore(y, operator, 0.01)
spline = resize(y, clean.shape, order=3)

figure, axes = plt.subplots(1, 2, figsize=(8, 4.3), layout="constrained")
for panel, image, name in zip(axes, (spline, large), ("enlarged by splines", "by heatprior"), strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=1)
    panel.set_title(f"{name}, {psnr(clean, image, data_range=1):.1f} dB")
    panel.set_axis_off()
plt.show()
