"""Functions of TVM, as a type checker should see them."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Self

from tvm.ir.expr import _CallableExprWithOp

class CallingConv(IntEnum):
    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2

class BaseFunc(_CallableExprWithOp):
    @property
    def attrs(self) -> Mapping[str, Any]: ...
    def __bool__(self) -> bool: ...
    def with_attr(
        self, attr_key_or_dict: str | Mapping[str, Any], attr_value: Any = None
    ) -> Self: ...
    def with_attrs(self, attr_map: Mapping[str, Any]) -> Self: ...
    def without_attr(self, attr_key: str) -> Self: ...
