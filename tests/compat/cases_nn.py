"""Calls of layers; see :mod:`.cases`."""

from tests.compat.cases import calls

NN = calls("""
nn.LGamma()(p)
nn.DiGamma()(p)
nn.IGamma()(p, p * 2)
nn.LBeta()(p, p + 1)
nn.MatMul()(x, s)
nn.MatMul(True)(x, y)
nn.MatMul(False, True)(c3, c3)
nn.ImageGradients()(img)
nn.TimeDistributed(ops.ReLU(), 1)(c3)
nn.TimeDistributed(ops.ReLU(), 1, 0)(c3)
nn.TimeDistributed(ops.ReLU(), -1, 1)(c3)
""")
