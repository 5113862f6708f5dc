import numpy as np

import tvmgraph.context as context
import tvmgraph.ops.operations as ops
from tvmgraph import Tensor
from tvmgraph.nn import Cell

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")
context.set_context(enable_graph_kernel=True)


class MyOp(Cell):
    """my first custom OP composited by basic OPs"""

    def __init__(self):
        super(MyOp, self).__init__()
        self.sub = ops.Sub()
        self.mul = ops.Mul()

    def construct(self, x, y):
        t1 = self.sub(x, y)
        return self.mul(t1, x)


class MyNet(Cell):
    def __init__(self):
        super(MyNet, self).__init__()
        self.mul = ops.Mul()
        self.pow = ops.Pow()
        self.my_op = MyOp()

    def construct(self, x, y):
        t1 = self.mul(x, 2.0)
        t2 = self.pow(t1, 3.0)
        res = self.my_op(t2, y)
        return res


x = np.ones((4, 4)).astype(np.float32) * 0.2
y = np.ones((4, 4)).astype(np.float32) * 0.3
net = MyNet()
output = net(Tensor(x), Tensor(y))
print("result: {}".format(output))
