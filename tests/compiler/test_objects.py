"""Machine code of single kernels on disk: taken by other graphs, never wrong, never in the way."""

import itertools
import re

import numpy as np
import pytest
import tvm
from tvm import tirx

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.backend.cpu.codegen.sharing import split_calls, symbol_of
from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.compile import clear_cache
from tvmgraph.runtime.store import EXECUTABLE, OBJECT

pytestmark = pytest.mark.skipif(disk.linker() is None, reason="there is no linker here")


def network(depth):
    """Ten kernels and more: products and rows of sizes that no two layers have in common."""
    ms.set_seed(3)
    sizes = [8 + 3 * i for i in range(depth + 1)]
    layers = [
        nn.SequentialCell(nn.Dense(n, m), nn.LayerNorm((m,)), nn.Softmax())
        for n, m in itertools.pairwise(sizes)
    ]
    return nn.SequentialCell(*layers).set_train(False)


def run(depth):
    """How many kernels of a network were there, whose result is checked."""
    net = network(depth)
    x = Tensor(np.linspace(-1, 1, 5 * 8, dtype=np.float32).reshape(5, 8))
    compiled = ms.jit(net)
    np.testing.assert_allclose(compiled(x).asnumpy(), net(x).asnumpy(), rtol=1e-5, atol=1e-6)
    (record,) = compiled.history
    assert record.disk == "kept"
    assert (f"; {record.reused} kernels were there" in compiled.explain()) == (record.reused > 0)
    return record.reused


def objects(folder):
    return sorted(folder.glob(f"*{OBJECT}"))


def forget_graphs(folder):
    """Leaves the kernels of graphs that were compiled."""
    clear_cache()
    for path in folder.glob(f"*{EXECUTABLE}"):
        path.unlink()


def test_a_longer_network_takes_the_kernels_of_a_shorter_one(folder):
    assert run(6) == 0
    before = objects(folder)
    assert len(before) >= 6
    assert run(8) >= len(before) // 2  # sizes that share a kernel may share another one then
    assert set(before) < set(objects(folder))


def test_damaged_files_are_made_again(folder):
    run(6)
    content = {path: path.read_bytes() for path in objects(folder)}
    for i, path in enumerate(content):
        code = content[path]
        path.write_bytes([code[:-40], code[:100] + b"?" + code[101:], b""][i % 3])
    forget_graphs(folder)
    assert run(6) == 0  # without any of them
    assert {path: path.read_bytes() for path in content} == content


def test_a_file_is_of_no_use_under_another_name(folder):
    run(6)
    first, second, *others = objects(folder)
    first.write_bytes(second.read_bytes())
    forget_graphs(folder)
    assert run(6) == 1 + len(others)


def test_small_programs_have_none(folder):
    f = ms.jit(lambda x: ops.exp(x) @ x)
    f(Tensor(np.ones((4, 4), np.float32)))
    assert not objects(folder) and len(list(folder.glob(f"*{EXECUTABLE}"))) == 1


def kernel(name, factor):
    """A loop that multiplies eight numbers."""
    x, y = (tirx.decl_buffer((8,), name=f"{letter}_of_{name}") for letter in "xy")
    i = tirx.Var(f"i_of_{name}", "int32")
    body = tirx.BufferStore(y, x[i] * tirx.FloatImm("float32", factor), [i])
    zero, eight = (tirx.IntImm("int32", bound) for bound in (0, 8))
    loop = tirx.For(i, zero, eight, tirx.ForKind.SERIAL, body)
    return tirx.PrimFunc([x, y], loop).with_attr("global_symbol", name)


def test_symbols_tell_what_kernels_compute():
    def symbols(**factors):
        mod = tvm.IRModule({name: kernel(name, factor) for name, factor in factors.items()})
        kernels, callers = split_calls(mod, by_content=True)
        assert callers is not None
        assert {v.name_hint for v in callers.functions} == factors.keys()
        return [symbol_of(f) for f in kernels.functions.values()]

    (half,) = symbols(conv2d3_scale1=0.5)
    assert re.fullmatch("conv2d_scale_[0-9a-f]{16}", half)
    assert symbols(conv2d_scale12=0.5) == [half]
    assert symbols(conv2d_scale=0.5, conv2d_scale1=0.5) == [half]  # once
    assert symbols(conv2d_scale=0.5000001) != [half]
