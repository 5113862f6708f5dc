"""The operator table: one row per operator, one file per family, and the functions built on it."""

from tvmgraph.ops.activation import *  # noqa: F403
from tvmgraph.ops.comparison import *  # noqa: F403
from tvmgraph.ops.composite import *  # noqa: F403
from tvmgraph.ops.conv import *  # noqa: F403
from tvmgraph.ops.creation import *  # noqa: F403
from tvmgraph.ops.elementwise import *  # noqa: F403
from tvmgraph.ops.image import *  # noqa: F403
from tvmgraph.ops.indexing import *  # noqa: F403
from tvmgraph.ops.linalg import *  # noqa: F403
from tvmgraph.ops.loss import *  # noqa: F403
from tvmgraph.ops.math import *  # noqa: F403
from tvmgraph.ops.normalization import *  # noqa: F403
from tvmgraph.ops.pooling import *  # noqa: F403
from tvmgraph.ops.random import *  # noqa: F403
from tvmgraph.ops.reduction import *  # noqa: F403
from tvmgraph.ops.shape import *  # noqa: F403
from tvmgraph.ops.sort import *  # noqa: F403
