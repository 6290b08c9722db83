"""
Colour
======

An orthogonal mix turns the three colours into brightness and two differences, so that white noise stays white. Each is
denoised by the same prior.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data

import heatprior as hp

clean = skimage.data.astronaut()[:192, 130:322]
noise = 30 * np.random.default_rng(0).standard_normal(clean.shape)
noisy = np.clip(clean + noise, 0, 255).astype(np.uint8)
denoised = hp.denoise(noisy, 30, channel_axis=-1)  # uint8 in, uint8 out

figure, axes = plt.subplots(1, 3, figsize=(10, 3.7), layout="constrained")
for panel, image, name in zip(axes, (noisy, denoised, clean), ("noisy", "denoised", "clean"), strict=True):
    panel.imshow(image)
    panel.set_title(name)
    panel.set_axis_off()
plt.show()
