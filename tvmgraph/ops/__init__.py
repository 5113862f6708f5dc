"""The operator table: one row per operator, one file per family, and the functions built on it."""

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.ops._lazy import __dir__, __getattr__  # noqa: F401
from tvmgraph.ops.activation.piecewise import *  # noqa: F403
from tvmgraph.ops.activation.smooth import *  # noqa: F403
from tvmgraph.ops.activation.softmax import *  # noqa: F403
from tvmgraph.ops.attention.functions import *  # noqa: F403
from tvmgraph.ops.attention.rows import *  # noqa: F403
from tvmgraph.ops.collective.rows import *  # noqa: F403
from tvmgraph.ops.compositions import *  # noqa: F403
from tvmgraph.ops.control_flow.rows import *  # noqa: F403
from tvmgraph.ops.conv.functions import *  # noqa: F403
from tvmgraph.ops.conv.rows import *  # noqa: F403
from tvmgraph.ops.creation.filled import *  # noqa: F403
from tvmgraph.ops.creation.ranges import *  # noqa: F403
from tvmgraph.ops.creation.windows import *  # noqa: F403
from tvmgraph.ops.custom.operator import *  # noqa: F403
from tvmgraph.ops.custom.registration import *  # noqa: F403
from tvmgraph.ops.effects.assignment import *  # noqa: F403
from tvmgraph.ops.elementwise.arithmetic import *  # noqa: F403
from tvmgraph.ops.elementwise.comparison import *  # noqa: F403
from tvmgraph.ops.elementwise.division import *  # noqa: F403
from tvmgraph.ops.elementwise.extrema import *  # noqa: F403
from tvmgraph.ops.elementwise.finite import *  # noqa: F403
from tvmgraph.ops.elementwise.logic import *  # noqa: F403
from tvmgraph.ops.elementwise.rounding import *  # noqa: F403
from tvmgraph.ops.fourier.rows import *  # noqa: F403
from tvmgraph.ops.fourier.transforms import *  # noqa: F403
from tvmgraph.ops.image.boxes import *  # noqa: F403
from tvmgraph.ops.image.deformable import *  # noqa: F403
from tvmgraph.ops.image.grid import *  # noqa: F403
from tvmgraph.ops.image.interpolate import *  # noqa: F403
from tvmgraph.ops.image.resample import *  # noqa: F403
from tvmgraph.ops.image.unfold import *  # noqa: F403
from tvmgraph.ops.indexing.advanced import *  # noqa: F403
from tvmgraph.ops.indexing.basic import *  # noqa: F403
from tvmgraph.ops.indexing.elements import *  # noqa: F403
from tvmgraph.ops.indexing.gather import *  # noqa: F403
from tvmgraph.ops.indexing.getitem import *  # noqa: F403
from tvmgraph.ops.indexing.scatter import *  # noqa: F403
from tvmgraph.ops.indexing.segments import *  # noqa: F403
from tvmgraph.ops.indexing.select import *  # noqa: F403
from tvmgraph.ops.indexing.slices import *  # noqa: F403
from tvmgraph.ops.internal.attention_gradient import *  # noqa: F403
from tvmgraph.ops.internal.conv_nchwc import *  # noqa: F403
from tvmgraph.ops.internal.interleave import *  # noqa: F403
from tvmgraph.ops.internal.matmul_panels import *  # noqa: F403
from tvmgraph.ops.linalg.decompositions import *  # noqa: F403
from tvmgraph.ops.linalg.matmul import *  # noqa: F403
from tvmgraph.ops.linalg.matrices import *  # noqa: F403
from tvmgraph.ops.linalg.products import *  # noqa: F403
from tvmgraph.ops.linalg.quantized import *  # noqa: F403
from tvmgraph.ops.linalg.solve import *  # noqa: F403
from tvmgraph.ops.loss.classification import *  # noqa: F403
from tvmgraph.ops.loss.ctc import *  # noqa: F403
from tvmgraph.ops.loss.metric import *  # noqa: F403
from tvmgraph.ops.loss.regression import *  # noqa: F403
from tvmgraph.ops.math.bessel import *  # noqa: F403
from tvmgraph.ops.math.binary import *  # noqa: F403
from tvmgraph.ops.math.complex import *  # noqa: F403
from tvmgraph.ops.math.complex_forms import attach as _attach
from tvmgraph.ops.math.gamma import *  # noqa: F403
from tvmgraph.ops.math.integer import *  # noqa: F403
from tvmgraph.ops.math.power import *  # noqa: F403
from tvmgraph.ops.math.series import *  # noqa: F403
from tvmgraph.ops.math.special import *  # noqa: F403
from tvmgraph.ops.math.trigonometric import *  # noqa: F403
from tvmgraph.ops.normalization.rows import *  # noqa: F403
from tvmgraph.ops.pooling.adaptive import *  # noqa: F403
from tvmgraph.ops.pooling.average import *  # noqa: F403
from tvmgraph.ops.pooling.functions import *  # noqa: F403
from tvmgraph.ops.pooling.maximum import *  # noqa: F403
from tvmgraph.ops.python_values import *  # noqa: F403
from tvmgraph.ops.random.dropout import *  # noqa: F403
from tvmgraph.ops.random.rows import *  # noqa: F403
from tvmgraph.ops.random.sampling import *  # noqa: F403
from tvmgraph.ops.reduction.functions import *  # noqa: F403
from tvmgraph.ops.reduction.histogram import *  # noqa: F403
from tvmgraph.ops.reduction.norms import *  # noqa: F403
from tvmgraph.ops.reduction.rows import *  # noqa: F403
from tvmgraph.ops.reduction.scan import *  # noqa: F403
from tvmgraph.ops.reduction.statistics import *  # noqa: F403
from tvmgraph.ops.rnn.sweep import *  # noqa: F403  # noqa: F403
from tvmgraph.ops.shape.axes import *  # noqa: F403
from tvmgraph.ops.shape.blocks import *  # noqa: F403
from tvmgraph.ops.shape.diagonal import *  # noqa: F403
from tvmgraph.ops.shape.join import *  # noqa: F403
from tvmgraph.ops.shape.pad import *  # noqa: F403
from tvmgraph.ops.shape.queries import *  # noqa: F403
from tvmgraph.ops.shape.repeat import *  # noqa: F403
from tvmgraph.ops.shape.rows import *  # noqa: F403
from tvmgraph.ops.shape.triangle import *  # noqa: F403
from tvmgraph.ops.sort.rows import *  # noqa: F403
from tvmgraph.ops.sort.unique import *  # noqa: F403

_attach()
_guard_module(globals(), "ops")
