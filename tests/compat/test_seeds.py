"""Random operators with seeds and generators draw from streams of their own."""

import copy
import pickle

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, mint, ops
from tvmgraph.errors import DeviceError

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
    "Uniform": (ONES,),
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


METHODS = {
    "bernoulli": lambda x, **how: x.bernoulli(**how),
    "bernoulli_": lambda x, **how: x.bernoulli_(0.5, **how),
    "bernoulli_ext": lambda x, **how: ops.bernoulli_ext(x, **how),
    "exponential": lambda x, **how: x.exponential(**how),
    "exponential_": lambda x, **how: x.exponential_(**how),
    "normal_": lambda x, **how: x.normal_(**how),
    "random_": lambda x, **how: x.random_(0, 1000, **how),
    "uniform": lambda x, **how: x.uniform(**how),
    "uniform_": lambda x, **how: x.uniform_(**how),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_draw_from_the_generator_that_they_are_given(name):
    def once(generator):
        return METHODS[name](Tensor(np.full(64, 0.5, np.float32)), generator=generator).asnumpy()

    generator, same = ms.Generator(3), ms.Generator(3)
    before = ms.default_generator.offset
    first, second = once(generator), once(generator)
    assert ms.default_generator.offset == before
    assert (first != second).any()
    np.testing.assert_array_equal(first, once(same))
    np.testing.assert_array_equal(second, once(same))


def test_a_new_tensor_is_on_the_device_that_is_named():
    assert ONES.new_empty((2,), device="CPU").shape == (2,)
    with pytest.raises(DeviceError):
        ONES.new_empty((2,), device="abacus")
