"""
Train a prior
=============

From a handful of images to orthogonal filters and their potentials in seconds. Here the images are those that come
with scikit-image; a folder of your own works as well: `hp.train("photos")`.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.metrics import peak_signal_noise_ratio as psnr

import heatprior as hp

images = [skimage.data.astronaut(), skimage.data.coffee(), skimage.data.chelsea(), skimage.data.rocket()]
entries = []
prior = hp.train(images, hp.TrainingConfig(size=5, steps=400), report=entries.append)
print(f"{prior.filters.count} filters, {prior.parameters} parameters")

# %%
# The loss, step by step, and the filters of largest norm.

figure = plt.figure(figsize=(10, 3), layout="constrained")
left, right = figure.subfigures(1, 2)
panel = left.subplots()
losses = [entry.loss for entry in entries if type(entry).__name__ == "StepReport"]
panel.plot(losses)
panel.set(xlabel="step", ylabel="loss")
for panel, j in zip(right.subplots(3, 8).flat, np.argsort(-prior.filters.norms), strict=True):
    panel.imshow(prior.filters.matrix[j].reshape(5, 5), cmap="gray")
    panel.set_axis_off()
plt.show()

# %%
# Now it denoises an image that it was not trained on.

clean = skimage.data.camera()[:200, :200] / 255.0
noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
print(f"noisy {psnr(clean, noisy, data_range=1):.2f} dB")
print(f"denoised {psnr(clean, hp.denoise(noisy, 0.1, prior=prior), data_range=1):.2f} dB")
