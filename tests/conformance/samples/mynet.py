import numpy as np

import tvmgraph.context as context
import tvmgraph.ops as ops
from tvmgraph import Tensor
from tvmgraph.nn import Cell

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")
context.set_context(enable_graph_kernel=True)


class MyNet(Cell):
    def construct(self, x):
        a = ops.mul(x, 2.0)
        res = ops.add(a, 1.0)
        return res


x = np.ones((4, 4)).astype(np.float32) * 0.5
net = MyNet()
output = net(Tensor(x))
print("result: {}".format(output))
