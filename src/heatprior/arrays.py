"""The array types that the whole package speaks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]
ChannelAxis = int | tuple[()] | None  # (): there is none, though the last axis is as long as colours have it
