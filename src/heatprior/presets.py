"""The one table of speed/quality presets: library, command line, page, napari and blocks take them from here."""

from __future__ import annotations

from typing import NamedTuple

from heatprior.errors import InvalidInputError


class Preset(NamedTuple):
    """The prior for white noise, and whether it is fitted to the image as well (restoration/evidence.py).

    Of a volume, along how many axes its slices are denoised, and in how many rounds (restoration/volumes.py).
    """

    prior: str
    adapts: bool = False
    axes: int = 3
    rounds: int = 1
    words: str = ""  # beside `default`, for people who choose
    haste: float = 1.0  # in `restore` alone: of its steps, one in so many is taken

    @property
    def is_local(self) -> bool:
        """Whether blocks of a large image can be denoised at it: a prior is fitted to the whole."""
        return not self.adapts


# In the order in which people are shown them, the fastest first.
QUICK, DEFAULT = "fast", "default"  # that of a quick look, and the one that nobody has to choose
PRESETS = {
    QUICK: Preset("fast7", axes=1, words="several times faster, lower quality", haste=4.0),
    DEFAULT: Preset("tuned"),
    "best": Preset("tuned", adapts=True, rounds=2, words="better, above all beyond photographs, six times slower"),
}


def find_preset(quality: str) -> Preset:
    """Find the preset of this name."""
    if not isinstance(quality, str) or quality not in PRESETS:
        raise InvalidInputError(f"quality is {quality!r}; expected {', '.join(map(repr, PRESETS))}")
    return PRESETS[quality]
