"""
Tweedie: from the score to the clean patch
==========================================

The posterior mean of the clean patch is the noisy one plus σ² times the gradient of the log-density. For one response
that is a curve: small responses are noise and shrink to nothing, large ones stay.
"""

import matplotlib.pyplot as plt
import numpy as np

import heatprior as hp

prior = hp.load("patch7")
rng = np.random.default_rng(0)
sigma = 0.1
clean = prior.sample(1000, rng=rng)
noisy = clean + sigma * rng.standard_normal(clean.shape)

mean, variance = prior.posterior(noisy, sigma)
print(f"difference to Tweedie's formula: {np.abs(mean - hp.tweedie(prior, noisy, sigma)).max():.1e}")

# %%
# The posterior's variance is right on average: it predicts the error that is really made.

error = mean - clean
print(f"mean squared error: {np.mean(error**2):.5f}, predicted by the posterior: {variance.mean():.5f}")

# %%
# The posterior mean of one response, over the noisy response, at four noise levels.

j = int(np.argsort(prior.filters.norms)[20])
response = np.repeat(np.linspace(-0.6, 0.6, 301)[:, None], prior.filters.count, axis=1)
figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
axes.plot(response[:, j], response[:, j], "k:", label="nothing done")
for level in (0.02, 0.05, 0.1, 0.2):
    shrunk, _ = prior.experts.posterior(response, level * prior.filters.norms)
    axes.plot(response[:, j], shrunk[:, j], label=f"σ = {level:g}")
axes.set(xlabel="noisy response", ylabel="posterior mean of the clean one")
axes.legend()
plt.show()
