"""``tvm_ffi``, also where the working folder was deleted.

It imports PyTorch where that is installed, whose libraries end the process in such a folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def _in_a_folder() -> Iterator[None]:
    try:
        os.getcwd()
        here = None
    except FileNotFoundError:
        here = os.open(".", os.O_RDONLY)
        os.chdir(os.sep)
    try:
        yield
    finally:
        if here is not None:
            os.fchdir(here)
            os.close(here)


with _in_a_folder():
    import tvm_ffi

__all__ = ["tvm_ffi"]
