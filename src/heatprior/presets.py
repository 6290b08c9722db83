"""The one table of speed/quality presets: library, command line, page, napari and blocks take them from here."""

from __future__ import annotations

from typing import NamedTuple


class Preset(NamedTuple):
    """The prior for white noise, and in how many symmetries of the square an image is denoised."""

    prior: str
    symmetries: int = 1
    words: str = ""  # beside `default`, for people who choose

    @property
    def is_local(self) -> bool:
        """Whether blocks of a large image can be denoised at it: symmetries turn the whole."""
        return self.symmetries == 1


QUICK, DEFAULT = "fast", "default"  # that of a quick look, and the one that nobody has to choose
PRESETS = {
    QUICK: Preset("fast7", words="several times faster, lower quality"),
    DEFAULT: Preset("tuned"),
    "best": Preset("tuned", 8, words="slightly better, about eight times slower"),
}
