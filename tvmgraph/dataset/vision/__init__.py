"""Transforms of images: arrays of shape (height, width, channels), uint8 or float."""

from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.dataset.checks import of_one_value as _of_one_value
from tvmgraph.dataset.transforms import not_random as not_random
from tvmgraph.dataset.vision.boxes import *  # noqa: F403
from tvmgraph.dataset.vision.color import *  # noqa: F403  # noqa: F403
from tvmgraph.dataset.vision.files import *  # noqa: F403
from tvmgraph.dataset.vision.geometry import *  # noqa: F403  # noqa: F403
from tvmgraph.dataset.vision.kinds import *  # noqa: F403
from tvmgraph.dataset.vision.mixing import *  # noqa: F403  # noqa: F403
from tvmgraph.dataset.vision.pixels import *  # noqa: F403
from tvmgraph.dataset.vision.policies import *  # noqa: F403
from tvmgraph.dataset.vision.values import *  # noqa: F403
from tvmgraph.dataset.vision.warps import *  # noqa: F403


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = _public_names(globals(), "not_random")

_of_one_value(globals())
_guard_module(globals(), "dataset.vision")


def __dir__() -> list[str]:
    return list(__all__)
