"""
Tomography from few views
=========================

Any linear operator will do, as a sparse matrix or a `LinearOperator` of scipy. Here, for 45 directions, each pixel of a
slice is shared between the two nearest bins of the detector.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from scipy.sparse import coo_matrix
from skimage.metrics import peak_signal_noise_ratio as psnr
from skimage.transform import resize

import heatprior as hp

side, views = 96, 45
clean = resize(skimage.data.shepp_logan_phantom(), (side, side), anti_aliasing=True)

y, x = (axis.ravel() - (side - 1) / 2 for axis in np.indices((side, side)))
bins = int(np.ceil(side * np.sqrt(2))) + 2
rows, columns, shares = [], [], []
for view in range(views):
    place = x * np.cos(np.pi * view / views) + y * np.sin(np.pi * view / views) + bins / 2
    lower = np.floor(place).astype(int)
    for number, share in ((lower, lower + 1 - place), (lower + 1, place - lower)):
        rows.append(view * bins + number)
        columns.append(np.arange(side * side))
        shares.append(share)
entries = (np.concatenate(shares), (np.concatenate(rows), np.concatenate(columns)))
matrix = coo_matrix(entries, shape=(views * bins, side * side)).tocsr()

sinogram = matrix @ clean.ravel()
sigma = 0.005 * sinogram.max()
data = sinogram + sigma * np.random.default_rng(0).standard_normal(sinogram.shape)
restored = hp.restore(data, matrix, sigma, shape=(side, side))

figure, axes = plt.subplots(1, 2, figsize=(8, 4.3), layout="constrained")
panels = (data.reshape(views, bins), restored)
names = (f"{views} views", f"restored, {psnr(clean, restored, data_range=1):.1f} dB")
for panel, image, name in zip(axes, panels, names, strict=True):
    panel.imshow(image, cmap="gray", aspect="auto" if image.shape[0] == views else "equal")
    panel.set_title(name)
    panel.set_axis_off()
plt.show()
