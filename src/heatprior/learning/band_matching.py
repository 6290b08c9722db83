"""Denoising score matching, Eq. (4), of whole images: the loss of bands with their experts, and its exact gradient.

For clean images x, noise n and y = x + sigma n the residual is r = x − y − sigma² Σ_j shares_j K_jᵀ phi_j(K_j y), with
K_j = xi_j S_j and S_j the filter of the band, and the loss is the mean of r² / sigma² over all pixels, as in
`score_matching.py`. With shares of one that is the convolutional model; with those of a wavelet basis, the mean over
all its shifts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.score_matching import score_derivatives, weight_gradient
from heatprior.kernels.threads import for_each
from heatprior.learning.objective import Point
from heatprior.log_sums import log_softmax
from heatprior.priors.bands import Bands, Shape, Spectrum, image_of, transformed


@dataclass(frozen=True)
class NoisyImages:
    """Clean images and unit noise, (n, H, W) each, and the noise level of each image, (n,), above zero."""

    clean: FloatArray
    noise: FloatArray
    sigma: FloatArray


NORMS, LOGITS = 0, 1  # the two blocks of variables


@dataclass(frozen=True)
class BandMatching:
    """The loss on one batch as a function of the point [xi (J,), logits (J, L)]; all images have one shape.

    The batch comes in pieces, which run side by side and are added in order: the number of threads changes no bit.
    """

    batch: Sequence[NoisyImages]
    bands: Bands
    reach: float

    def value(self, point: Point) -> float:
        """The loss at a point."""
        return self._evaluate(point, ())[0]

    def gradient(self, point: Point, block: int | None) -> tuple[float, Point]:
        """The loss, and its gradient in one block or, for `block=None`, in both."""
        return self._evaluate(point, (NORMS, LOGITS) if block is None else (block,))

    def _evaluate(self, point: Point, blocks: Sequence[int]) -> tuple[float, Point]:
        height, width = self.batch[0].clean.shape[-2:]
        spectra = spectra_of(self.bands, (height, width))
        pieces = for_each(lambda piece: self._sums_over(piece, spectra, point, blocks), self.batch)
        count = sum(piece.clean.size for piece in self.batch)
        losses, gradients = zip(*pieces, strict=True)
        return sum(losses) / count, [np.sum(parts, axis=0) / count for parts in zip(*gradients, strict=True)]

    def _sums_over(
        self, batch: NoisyImages, spectra: Spectrum, point: Point, blocks: Sequence[int]
    ) -> tuple[float, Point]:
        norms, logits = point
        log_weights = np.asarray(log_softmax(logits, axis=1))
        means = np.linspace(-self.reach, self.reach, logits.shape[1])
        shape, count = batch.clean.shape[-2:], self.bands.count
        shares = self.bands.shares
        sigma = batch.sigma[:, None, None]

        def in_bands(images: FloatArray) -> FloatArray:
            """S_j of images (n, H, W): (J, pixels of all)."""
            return image_of(spectra[:, None] * transformed(images), shape).reshape(count, -1)

        def put_together(responses: FloatArray, factors: FloatArray) -> FloatArray:
            """Σ_j factors_j S_jᵀ responses_j: (n, H, W)."""
            of_bands = transformed(responses.reshape(count, *batch.clean.shape))
            return image_of(np.einsum("j,jhw,jnhw->nhw", factors, np.conj(spectra), of_bands), shape)

        unit = in_bands(batch.clean + sigma * batch.noise)
        responses = norms[:, None] * unit
        noise_variance = np.broadcast_to(sigma**2, batch.clean.shape).reshape(-1)
        variances = (means[1] - means[0]) ** 2 + (norms**2)[:, None] * noise_variance
        derivatives = score_derivatives(responses, variances, log_weights, means, want_derivatives=NORMS in blocks)
        # r / sigma, of the noise that the bands see
        seen = put_together(in_bands(batch.noise), shares)
        residual = -seen - sigma * put_together(derivatives.score, shares * norms)
        loss = float(np.vdot(residual, residual))
        if not blocks:
            return loss, []

        back = in_bands(-2.0 * sigma * residual)  # ∂loss/∂(S_jᵀ phi_j), up to factors
        back_scores = (shares * norms)[:, None] * back  # ∂loss/∂phi
        gradients: Point = []
        if NORMS in blocks:
            gradient = shares * (derivatives.score * back).sum(axis=1)
            gradient += (back_scores * derivatives.in_response * unit).sum(axis=1)
            gradient += 2.0 * norms * ((back_scores * derivatives.in_variance) @ noise_variance)
            gradients.append(gradient)
        if LOGITS in blocks:
            gradients.append(weight_gradient(responses, variances, back_scores, derivatives, log_weights, means))
        return loss, gradients


def spectra_of(bands: Bands, shape: Shape) -> Spectrum:
    """All of them, (J, H, W // 2 + 1)."""
    return np.stack([bands.spectrum(j, shape) for j in range(bands.count)])
