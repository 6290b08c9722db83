"""The gradient through one step of empirical Bayes with patch averaging, for stacks of images: for fine-tuning.

With A(y, sigma) = y + mean over the patches p that hold a pixel of Σ_j k_j v_j(⟨k_j, p⟩), v_j = sigma² phi_j, and g the
gradient in A, the patches of g over the number of patches that hold a pixel are the gradient in what the patches add;
the filters map it to one in v_j, and from there each response is differentiated by itself.

The functions v_j are piecewise linear between the nodes of a table, as in the denoising itself, so that their
derivatives in the prior are needed at the nodes alone. The dependence of the nodes' positions on the norms of the
filters is neglected: its effect vanishes as the table becomes finer, and a test bounds it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.patches import EVERY
from heatprior.kernels.score_matching import score_derivatives, weight_gradient
from heatprior.scipy_subset import log_softmax
from paper.learning.interpolation import interpolate, interpolate_back

TABLE_CELLS = 384  # intervals between the nodes of a table
WIDTHS_BEYOND = 5.0  # widths beyond the outermost mean that the tables reach


class Kept(NamedTuple):
    """What backpropagation through a step needs: patches (a, n), responses and changes of responses (J, n)."""

    patches: FloatArray
    responses: FloatArray
    changes: FloatArray


class AveragingStep:
    """A(·, sigma) for stacks of images (C, H, W), and its derivatives in the prior, summed over the backward passes."""

    def __init__(
        self,
        filters: FloatArray,
        logits: FloatArray,
        reach: float,
        sigma: float,
        *,
        dtype: Any = np.float32,
        cells: int = TABLE_CELLS,
    ) -> None:
        self._exact, self.sigma = filters, sigma
        self._filters = np.ascontiguousarray(filters, dtype)
        self._size = int(np.sqrt(filters.shape[1]))
        self._log_weights = np.asarray(log_softmax(logits, axis=1))
        self._means = np.linspace(-reach, reach, logits.shape[1])
        self._squared_norms = (filters**2).sum(axis=1)
        variances = (self._means[1] - self._means[0]) ** 2 + self._squared_norms * sigma**2
        self._halves = reach + WIDTHS_BEYOND * np.sqrt(variances)
        self._nodes = (np.linspace(-1.0, 1.0, cells + 1) * self._halves[:, None]).astype(dtype)
        self._variances = np.repeat(variances[:, None], cells + 1, axis=1).astype(dtype)
        self._derivatives = score_derivatives(self._nodes, self._variances, self._log_weights, self._means)
        self._values = (sigma**2 * self._derivatives.score).astype(dtype)
        self._in_filters, self._in_nodes = np.zeros_like(filters), np.zeros(self._nodes.shape)

    def forward(self, images: FloatArray) -> tuple[FloatArray, Kept]:
        """The forward pass: A(images), and what the backward pass needs."""
        patches = cut(images, self._size)
        responses = self._filters @ patches
        changes = interpolate(responses, self._values, self._halves)
        total = add_up(self._filters.T @ changes, images.shape, self._size)
        return images + total * self._parts(images.shape), Kept(patches, responses, changes)

    def back(self, in_result: FloatArray, kept: Kept, *, to_images: bool) -> FloatArray | None:
        """The backward pass: adds to the derivatives in the prior; returns the gradient in the images, if wanted."""
        back = cut(in_result * self._parts(in_result.shape), self._size)
        in_nodes, in_responses = interpolate_back(kept.responses, self._values, self._halves, self._filters @ back)
        self._in_nodes += in_nodes
        self._in_filters += kept.changes @ back.T
        self._in_filters += in_responses @ kept.patches.T
        if not to_images:
            return None
        return in_result + add_up(self._filters.T @ in_responses, in_result.shape, self._size)

    def gradient(self) -> tuple[FloatArray, FloatArray, float]:
        """In filters, logits and sigma."""
        in_scores = self.sigma**2 * self._in_nodes
        by_variance = (in_scores * self._derivatives.in_variance).sum(axis=1)  # (J,)
        in_filters = self._in_filters + 2.0 * self.sigma**2 * by_variance[:, None] * self._exact
        coefficients = in_scores.astype(self._nodes.dtype)
        in_logits = weight_gradient(
            self._nodes, self._variances, coefficients, self._derivatives, self._log_weights, self._means
        )
        by_score = float((in_scores * self._derivatives.score).sum())
        in_sigma = 2.0 * by_score / self.sigma + 2.0 * self.sigma * float(by_variance @ self._squared_norms)
        return in_filters, in_logits, in_sigma

    def _parts(self, shape: tuple[int, ...]) -> FloatArray:
        """One over the number of patches that hold each pixel."""
        rows, columns = (EVERY.patches_that_hold(length, self._size) for length in shape[1:])
        return np.asarray(1.0 / (rows[:, None] * columns), self._filters.dtype)


def cut(images: FloatArray, size: int) -> FloatArray:
    """All patches of a stack of images (C, H, W), in columns: (size², n)."""
    count, rows, columns = len(images), images.shape[1] - size + 1, images.shape[2] - size + 1
    patches = np.empty((size, size, count, rows, columns), images.dtype)
    for i in range(size):
        for j in range(size):
            patches[i, j] = images[:, i : i + rows, j : j + columns]
    return patches.reshape(size * size, -1)


def add_up(patches: FloatArray, shape: tuple[int, ...], size: int) -> FloatArray:
    """The adjoint of `cut`: the sum over the patches that hold a pixel, (C, H, W)."""
    count, rows, columns = shape[0], shape[1] - size + 1, shape[2] - size + 1
    parts, images = patches.reshape(size, size, count, rows, columns), np.zeros(shape, patches.dtype)
    for i in range(size):
        for j in range(size):
            images[:, i : i + rows, j : j + columns] += parts[i, j]
    return images
