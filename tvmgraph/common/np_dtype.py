"""Types of arrays that NumPy itself does not have."""

from __future__ import annotations

from ml_dtypes import bfloat16

__all__ = ["bfloat16"]
