"""Tensors given to the library come back as tensors."""

import numpy as np
import torch

import heatprior as hp

BYTES = np.random.default_rng(0).poisson(np.tile(np.linspace(20, 120, 40), (32, 1))).astype(np.uint8)
SETTINGS = {"quality": "fast"}
EXPECTED = hp.denoise(BYTES, 8, **SETTINGS)


def test_tensors_come_back_as_tensors():
    result = hp.denoise(torch.from_numpy(BYTES), 8, **SETTINGS)
    assert isinstance(result, torch.Tensor)
    np.testing.assert_array_equal(result.numpy(), EXPECTED)
    wide = hp.denoise(torch.from_numpy(BYTES.astype(np.int64)), 8, **SETTINGS)
    assert wide.dtype == torch.int64
