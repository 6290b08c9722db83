"""The photograph of the demonstration and of the page."""

import numpy as np

from heatprior.data.trials import photograph


def test_the_photograph_is_there_and_is_one():
    picture = photograph()
    assert picture.shape == (600, 512, 3)
    assert picture.dtype == np.uint8
    grey = picture.mean(axis=-1)
    steps = np.abs(np.diff(grey, axis=1))
    assert grey.std() > 50 > 10 * np.median(steps)  # light and dark, and neighbours alike
