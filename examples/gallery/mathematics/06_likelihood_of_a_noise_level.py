"""
How likely is a noise level?
============================

The density of noisy patches is normalised at every noise level, so levels can be compared: the one at which the
patches of an image are likeliest is the estimate. `hp.estimate_sigma` does the same with more care, and gives an
error.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from skimage.util import view_as_windows

import heatprior as hp

prior = hp.load("patch7")
clean = skimage.data.camera()[:256, :256] / 255.0
levels = np.geomspace(0.02, 0.4, 31)

figure, panel = plt.subplots(figsize=(6, 4), layout="constrained")
for true in (0.05, 0.1, 0.2):
    noisy = clean + true * np.random.default_rng(0).standard_normal(clean.shape)
    patches = view_as_windows(noisy, 7)[::6, ::6].reshape(-1, 49)
    likelihood = np.array([prior.log_prob(patches, level).mean() for level in levels])
    (line,) = panel.plot(levels, likelihood - likelihood.max(), label=f"true σ = {true:g}")
    panel.axvline(true, color=line.get_color(), linestyle=":")
    found = hp.estimate_sigma(noisy)
    print(f"true {true:g}: likeliest {levels[likelihood.argmax()]:.3f}, estimate_sigma {found.sigma:.4f}")
panel.set(xscale="log", xlabel="σ", ylabel="mean log-density, over its maximum", ylim=(-60, 3))
panel.set_xticks([0.02, 0.05, 0.1, 0.2, 0.4], labels=["0.02", "0.05", "0.1", "0.2", "0.4"])
panel.minorticks_off()
panel.legend()
plt.show()
