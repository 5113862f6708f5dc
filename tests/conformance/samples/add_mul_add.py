import numpy as np

import tvmgraph as ms
import tvmgraph.nn as nn
from tvmgraph import Tensor, ms_function


class Add(nn.Cell):
    """Adds x to itself."""

    def construct(self, x):
        x = x + x
        x = x + x
        return x


class Mul(nn.Cell):
    """Multiplies x by itself."""

    @ms_function  # runs as a graph
    def construct(self, x):
        x = x * x
        x = x * x
        return x


class Test(nn.Cell):
    """Add(x), Mul(x), then Add(x)."""

    def __init__(self):
        super(Test, self).__init__()
        self.add = Add()
        self.mul = Mul()

    def construct(self, x):
        x = self.add(x)
        x = self.mul(x)
        x = self.add(x)
        return x


ms.set_context(mode=ms.PYNATIVE_MODE)
x = Tensor(np.ones([3, 3], dtype=np.float32))
print("init x:\n", x)
net = Test()
output = net(x)
print("\nx:\n", output)
