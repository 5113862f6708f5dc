"""Products with weights of a few bits: as exact as float32, whatever instructions do them."""

from __future__ import annotations

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.ops.linalg.quantized import dequantized, quantize_rows


@pytest.mark.parametrize(
    "rows, depth, columns, bits, group",
    [(1, 768, 50, 4, 32), (5, 256, 48, 4, 128), (6, 120, 20, 4, 40), (5, 72, 33, 8, 36)],
)
def test_products_are_as_exact_as_float32(
    rows: int, depth: int, columns: int, bits: int, group: int
) -> None:
    rng = np.random.default_rng(depth)
    words, scales = quantize_rows(rng.standard_normal((columns, depth)), bits, group)
    exact = dequantized(words, scales, columns).astype(np.float64).T

    @ms.jit
    def product(x: Tensor, words: Tensor, scales: Tensor) -> Tensor:
        return ops.quantized_dense(x, words, scales, columns=columns)

    x = rng.standard_normal((rows, depth)).astype(np.float32)
    x[0, : depth // 2] *= 1e6  # blocks of one sum differ as much as that
    for scale in (1, 1e-20, 1e20):
        given = x * np.float32(scale)
        found = product(Tensor(given), Tensor(words), Tensor(scales)).asnumpy()
        bound = np.abs(given.astype(np.float64)) @ np.abs(exact)
        assert (np.abs(found - given @ exact) < 1e-6 * bound).all()
    x[-1], x[0, 3] = 0, np.nan
    found = product(Tensor(x), Tensor(words), Tensor(scales)).asnumpy()
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1:]).all() and (rows == 1 or not found[-1].any())
