"""`heatprior warmup`: compile for this processor now, so that no later run has to."""

from __future__ import annotations

import time

import typer

SIDE = 96  # pixels of the images that are tried
EXAMPLES = {
    "warmup": """\
  heatprior warmup        once after an installation, or when an image for containers is built
"""
}


def warmup() -> None:
    """Compile the kernels for denoising and noise estimation, and cache them on disk.

    Otherwise the first run does so, in about ten seconds. Compiled code is valid for one processor type and one
    version of heatprior; it is kept beside the package, or in the user's cache if that is not writable.
    """
    import numpy as np

    from heatprior import denoise, estimate_noise, load
    from heatprior.kernels.compiler import on_compiling

    compiled: list[None] = []
    on_compiling(lambda: compiled.append(None))
    start = time.perf_counter()
    image = np.random.default_rng(0).normal(0.5, 0.1, (SIDE, SIDE)).astype(np.float32)
    levels = np.broadcast_to(np.linspace(0.05, 0.15, SIDE, dtype=np.float32), image.shape)
    for name in ("patch7", "mixture", "wavelet-density"):
        prior = load(name)
        for sigma in (0.1, levels):
            denoise(image, sigma, prior=prior)
    estimate_noise(image)
    estimate_noise(image, "map", prior="mixture")
    typer.echo(f"compiled {len(compiled)} kernels, {time.perf_counter() - start:.1f} s in all")
