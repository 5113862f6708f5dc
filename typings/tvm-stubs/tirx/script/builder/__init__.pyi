"""Statements of loops, as a type checker should see them."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tvm.ir import Expr, Var
from tvm.tirx import Buffer, Stmt
from tvm.tirx.script.builder import frame

_Operand = Expr | int | float | bool

def prim_func(
    is_private: bool = False,
    s_tir: bool = False,
    persistent: bool = False,
    *,
    private: bool | None = None,
) -> frame.PrimFuncFrame: ...
def func_name(name: str) -> None: ...
def func_attr(attrs: Mapping[str, Any]) -> None: ...
def arg(name: str, obj: Any) -> Any: ...
def sblock(name: str = "", no_realize: bool = False, exec_scope: str = "") -> frame.SBlockFrame: ...
def reads(*buffer_slices: Any) -> None: ...
def writes(*buffer_slices: Any) -> None: ...
def alloc_buffer(
    shape: Sequence[_Operand] | _Operand,
    dtype: str = "float32",
    data: Var | None = None,
    strides: Sequence[_Operand] | None = None,
    elem_offset: _Operand | None = None,
    byte_offset: _Operand | None = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    layout: Any = "default",
    allocated_addr: int | tuple[int, ...] | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> Buffer: ...
def buffer(
    shape: Sequence[_Operand] | _Operand,
    dtype: str = "float32",
    data: Var | None = None,
    strides: Sequence[_Operand] | None = None,
    elem_offset: _Operand | None = None,
    byte_offset: _Operand | None = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
) -> Buffer: ...
def decl_buffer(
    shape: Sequence[_Operand] | _Operand,
    dtype: str = "float32",
    data: Expr | None = None,
    strides: Sequence[_Operand] | None = None,
    elem_offset: _Operand | None = None,
    byte_offset: _Operand | None = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    layout: Any = "default",
    allocated_addr: int | tuple[int, ...] | None = None,
) -> Buffer: ...
def buffer_store(buffer: Buffer, value: _Operand, indices: Sequence[_Operand]) -> None: ...
def evaluate(value: Any) -> None: ...
def bind(value: _Operand, ty: Any = None, *, var: Var | None = None) -> Var: ...
def add_to_parent(stmt: Stmt) -> None: ...
def serial(
    start: _Operand,
    stop: _Operand | None = None,
    *,
    annotations: Mapping[str, Any] | None = None,
    step: _Operand | None = None,
    unroll: bool | int | None = None,
    dtype: str | None = None,
) -> frame.ForFrame: ...
def parallel(
    start: _Operand,
    stop: _Operand | None = None,
    *,
    annotations: Mapping[str, Any] | None = None,
    step: _Operand | None = None,
    dtype: str | None = None,
) -> frame.ForFrame: ...
def vectorized(
    start: _Operand,
    stop: _Operand | None = None,
    *,
    annotations: Mapping[str, Any] | None = None,
    step: _Operand | None = None,
    dtype: str | None = None,
) -> frame.ForFrame: ...
def thread_binding(
    start: _Operand,
    stop: _Operand | None = None,
    thread: str | None = None,
    *,
    annotations: Mapping[str, Any] | None = None,
) -> frame.ForFrame: ...
def attr(
    node_or_dict: Any, attr_key: str | None = None, value: _Operand | str | None = None
) -> AbstractContextManager[Any]: ...
def While(condition: _Operand) -> frame.WhileFrame: ...
def If(condition: _Operand) -> frame.IfFrame: ...
def Then() -> frame.ThenFrame: ...
def Else() -> frame.ElseFrame: ...
def address_of(obj: Any, span: Any = None) -> Expr: ...
def tvm_storage_sync(storage_scope: str) -> Expr: ...
