"""Linear operators for `hp.restore`: what was done to an image before it was measured."""

from heatprior.restoration.operators.convolution import Blur, Downsample
from heatprior.restoration.operators.mask import Fourier, Mask

__all__ = ["Blur", "Downsample", "Fourier", "Mask"]
