import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, ops

ms.set_context(device_target="CPU")

x = Tensor(np.ones([1, 3, 3, 4]).astype(np.float32))
y = Tensor(np.ones([1, 3, 3, 4]).astype(np.float32))
output = ops.add(x, y)
print(output)
