import numpy as np

from tvmgraph import Tensor, jit, ops


@jit(mode="PIJit")
def tensor_cal(x, y, z):
    return ops.matmul(x, y) + z


x = Tensor(np.ones(shape=[2, 3]), dtype=np.float32)
y = Tensor(np.ones(shape=[3, 4]), dtype=np.float32)
z = Tensor(np.ones(shape=[2, 4]), dtype=np.float32)
output = tensor_cal(x, y, z)
print(output)
