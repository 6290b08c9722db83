"""Images cut into pieces, and the noise that a piece has: what tests of equal bits share."""

from heatprior.noise_value import Noise


def noise_in(levels, here):
    """The noise of a part of an image: 0.1 everywhere, or of a map of `levels`."""
    if levels is None:
        return Noise.constant(0.1)
    part = levels[here]
    return Noise(part.__getitem__, float(levels.min()), float(levels.max()))


def pieces(shape, rows, columns):
    """Places of at most rows×columns pixels that cover an image."""
    for top in range(0, shape[0], rows):
        for left in range(0, shape[1], columns):
            yield slice(top, min(top + rows, shape[0])), slice(left, min(left + columns, shape[1]))
