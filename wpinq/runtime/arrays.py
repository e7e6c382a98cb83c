"""The arrays that numbers come in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""An array of 64-bit floats."""

Integers = NDArray[np.int64]
"""An array of 64-bit integers."""
