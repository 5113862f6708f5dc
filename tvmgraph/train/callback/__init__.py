"""Callbacks of the training loop: what runs at its events, and those that come with it."""

import importlib
from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.compat.private import set_cur_net as _set_cur_net  # noqa: F401
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.train.callback.base import *  # noqa: F403
from tvmgraph.train.callback.base import Callbacks as _CallbackManager  # noqa: F401
from tvmgraph.train.callback.base import RunArguments as _InternalCallbackParam  # noqa: F401
from tvmgraph.train.callback.base import loss_value as _handle_loss  # noqa: F401
from tvmgraph.train.callback.checkpoint import *  # noqa: F403
from tvmgraph.train.callback.control import *  # noqa: F403
from tvmgraph.train.callback.leaving import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name == "SummaryCollector":
        return importlib.import_module("tvmgraph.train.summary").SummaryCollector
    return look(__name__, name, __all__)


__all__ = _public_names(globals(), "SummaryCollector")


def __dir__() -> list[str]:
    return list(__all__)
