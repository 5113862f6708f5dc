import numpy as np

import tvmgraph as ms
import tvmgraph.ops as ops
from tvmgraph import Tensor, jit, nn


class Net(nn.Cell):
    @jit
    def construct(self, x, y):
        return x * y


class GradNet(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.grad_op = ops.GradOperation(get_all=True)

    def construct(self, x, y):
        return self.grad_op(self.net)(x, y)


x = Tensor(np.ones([2, 2]), ms.float32)
y = Tensor(np.full([2, 2], 2.0), ms.float32)
output = GradNet(Net())(x, y)
print(output)
