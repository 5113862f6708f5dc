"""Random operators with seeds and generators draw from streams of their own."""

import copy
import pickle

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, mint, ops

ONES = Tensor(np.ones(16, np.float32))
SHAPE = (16,)
CALLS = {
    "Bernoulli": (ONES, 0.5),
    "Gamma": (SHAPE, Tensor([1.0]), Tensor([1.0])),
    "Multinomial": (ONES, 16),
    "RandomChoiceWithMask": (ONES > 0,),
    "RandomGamma": (SHAPE, Tensor([1.0])),
    "RandomPoisson": (Tensor([16], ms.int32), Tensor([5.0])),
    "RandomShuffle": (ops.arange(16),),
    "StandardLaplace": (SHAPE,),
    "StandardNormal": (SHAPE,),
    "TruncatedNormal": (SHAPE,),
    "UniformInt": (SHAPE, 0, 1000),
    "UniformReal": (SHAPE,),
}


def drawn(operator, args):
    found = operator(*args)
    return (found[0] if isinstance(found, tuple) else found).asnumpy()


@pytest.mark.parametrize("name", CALLS)
def test_operators_of_one_seed_draw_the_same_numbers(name):
    one, other, third = (getattr(ops, name)(seed=s) for s in (7, 7, 8))
    first, second = drawn(one, CALLS[name]), drawn(one, CALLS[name])
    ops.rand(5)  # the global stream is another one
    np.testing.assert_array_equal(first, drawn(other, CALLS[name]))
    np.testing.assert_array_equal(second, drawn(other, CALLS[name]))
    assert (first != second).any()
    assert (first != drawn(third, CALLS[name])).any()


def test_a_compiled_function_moves_a_stream_on():
    one, other = ops.StandardNormal(7), ops.StandardNormal(7)
    compiled = ms.jit(lambda x: x + one(SHAPE))
    for _ in range(3):
        np.testing.assert_allclose(compiled(ONES * 0).asnumpy(), other(SHAPE).asnumpy(), 1e-5, 1e-6)


def test_a_generator_draws_alike_in_compiled_and_eager_code():
    generator, same = ms.Generator(3), ms.Generator(3)
    compiled = ms.jit(lambda x: x + mint.randn(4, generator=generator))
    found = [compiled(Tensor(np.zeros(4, np.float32))).asnumpy() for _ in range(2)]
    wanted = [mint.randn(4, generator=same).asnumpy() for _ in range(2)]
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)
    assert generator.offset == same.offset > 0
    generator.manual_seed(3)  # the compiled function sees it
    again = compiled(Tensor(np.zeros(4, np.float32))).asnumpy()
    np.testing.assert_array_equal(again, found[0])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_of_a_generator_go_on_where_it_is(copied):
    generator = ms.Generator(3)
    mint.rand(4, generator=generator)
    other = copied(generator)
    assert repr(other) == repr(generator)
    numbers = mint.rand(4, generator=generator).asnumpy()
    np.testing.assert_array_equal(mint.rand(4, generator=other).asnumpy(), numbers)
