"""How the elements a stage touches lie in memory, as its loops run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import ir, sym, tirx

from tvmgraph.backend.loop_ir.program import Axis, Stage, integers, loads_of, product, static_shape
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, Var
from tvmgraph.backend.walks import elements, walk


@dataclass(frozen=True)
class Access:
    """One read or write.

    Attributes:
        buffer: What is accessed.
        strides: By how many elements the address moves when an axis advances by one, per axis;
            None when the address is not linear in the axes.
        used: Whether an axis takes part in the address at all, per axis.
    """

    buffer: Buffer
    strides: tuple[int, ...] | None
    used: tuple[bool, ...]

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return dtype_bytes(str(self.buffer.dtype))


def dtype_bytes(dtype: str) -> int:
    """Bytes of one element.

    Args:
        dtype: TVM's name of a dtype, such as ``float32`` or ``bool``; of a vector, of one lane.
    """
    if dtype == "bool":
        return 1
    digits = "".join(c for c in dtype.removeprefix("bfloat").removeprefix("float") if c.isdigit())
    return max(1, int(digits) // 8)


def access(buffer: Buffer, indices: Sequence[Expr], axes: Sequence[Axis]) -> Access:
    """Analyses ``buffer[indices]`` in loops over ``axes``.

    Args:
        buffer: What is read or written, of known extents.
        indices: One index expression per dimension of the buffer.
        axes: The loops around it, outermost first.

    Returns:
        The stride per axis in elements, None where the address is not linear in them; and which
        axes it depends on.

    Raises:
        ValueError: if an extent of the buffer is symbolic.
    """
    shape = static_shape(buffer)
    if shape is None:
        raise ValueError(f"{buffer.name} has a symbolic shape")
    plain = _plain_strides(shape, indices, axes)
    if plain is not None:
        return Access(buffer, plain, tuple(stride != 0 for stride in plain))
    variables = [axis.var for axis in axes]
    written = address_of(shape, indices)
    address = bounded(axes).simplify(written)
    used = variables_in([address], variables)
    if any(
        variables_in(elements(load.indices), variables).count(True) for load in loads_of(written)
    ):
        return Access(buffer, None, used)
    terms = list(sym.detect_linear_equation(address, variables)) if variables else [address]
    return Access(buffer, integers(terms[:-1]) if terms else None, used)


def accesses(stage: Stage, axes: Sequence[Axis]) -> list[Access]:
    """Every read and write of a stage.

    Args:
        stage: The loop nest.
        axes: Its loops, outermost first; those that are not named count as constants.

    Returns:
        First what it stores, one access per buffer, then what it reads in the order of the
        expressions.
    """
    reads = [access(load.source, elements(load.indices), axes) for load in stage.loads]
    return [*(access(buffer, stage.indices, axes) for buffer in stage.buffers), *reads]


def direct_uses(stage: Stage, axes: Sequence[Axis]) -> tuple[bool, ...]:
    """Per axis, whether its value is computed with outside of addresses (conditions, ranges).

    Args:
        stage: The loop nest.
        axes: The loops that are asked about.

    Returns:
        One bool per axis, in the order of ``axes``.
    """
    variables = [axis.var for axis in axes]
    seen = [False] * len(variables)

    def visit_load(_load: Load) -> tvm_ffi.WalkResult:
        return tvm_ffi.WalkResult.SKIP

    def visit_var(var: Var) -> None:
        for position, variable in enumerate(variables):
            seen[position] = seen[position] or var.same_as(variable)

    for value in stage.exprs:
        callbacks = [(Load, visit_load), (Var, visit_var)]
        tvm_ffi.structural_walk(value, callbacks, order="pre")
    return tuple(seen)


def groups(stage: Stage, axes: Sequence[Axis], found: Sequence[Access]) -> list[list[Axis]]:
    """Merges neighbouring axes over which every access runs on as over one longer axis.

    Args:
        stage: The loop nest.
        axes: Its loops, outermost first.
        found: All its accesses in these loops, see :func:`accesses`.

    Returns:
        The axes, outermost first, in groups that can be one loop each.
    """
    pinned = direct_uses(stage, axes)
    merged: list[list[Axis]] = []
    for position, axis in enumerate(axes):
        previous = position - 1
        joins = merged and not pinned[position] and not pinned[previous]
        if joins and all(_runs_on(item, previous, position, axis.extent) for item in found):
            merged[-1].append(axis)
        else:
            merged.append([axis])
    return merged


def group_extent(group: Sequence[Axis]) -> int:
    """Iterations of the merged loop.

    Args:
        group: Neighbouring loops that are one, from :func:`groups`.
    """
    return product(axis.extent for axis in group)


def _runs_on(item: Access, outer: int, inner: int, extent: int) -> bool:
    if item.strides is None:
        return not item.used[outer] and not item.used[inner]
    return item.strides[outer] == item.strides[inner] * extent


def _plain_strides(
    shape: Sequence[int], indices: Sequence[Expr], axes: Sequence[Axis]
) -> tuple[int, ...] | None:
    """The strides where all indices are loop variables or numbers, as most are; else None.

    TVM's analysis finds the same, but takes a hundred times as long.
    """
    strides = [0] * len(axes)
    for position, index in enumerate(indices):
        if isinstance(index, tirx.IntImm):
            continue
        if not isinstance(index, Var):
            return None
        for i, axis in enumerate(axes):
            if index.same_as(axis.var):
                strides[i] += product(shape[position + 1 :]) if axis.extent > 1 else 0
    return tuple(strides)


def address_of(shape: Sequence[int], indices: Sequence[Expr]) -> Expr:
    """The position of an element in memory, counted in elements.

    Args:
        shape: The extents of the buffer, which lies in memory in row-major order.
        indices: One index expression per dimension.

    Returns:
        An int64 expression.
    """
    address: Expr = tirx.IntImm("int64", 0)
    for position, index in enumerate(indices):
        address = address + index * tirx.IntImm("int64", product(shape[position + 1 :]))
    return address


def bounded(axes: Sequence[Axis]) -> sym.Analyzer:
    """TVM's analyzer, knowing how far the axes run.

    Args:
        axes: Loops from 0 to their extent.
    """
    analyzer = sym.Analyzer()
    for axis in axes:
        analyzer.bind(
            axis.var, ir.Range(tirx.IntImm("int64", 0), tirx.IntImm("int64", axis.extent))
        )
    return analyzer


def variables_in(exprs: Sequence[Expr], variables: Sequence[Var]) -> tuple[bool, ...]:
    """Per variable, whether it occurs in some expressions, addresses included.

    Args:
        exprs: The expressions.
        variables: The variables that are asked about.
    """
    found: list[Var] = []
    walk(exprs, (Var, found.append))
    return tuple(any(var.same_as(variable) for var in found) for variable in variables)
