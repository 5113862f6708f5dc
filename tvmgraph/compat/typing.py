"""MindSpore's ``_c_expression.typing``: kinds of dtypes, which zoos ask with ``isinstance``."""

from __future__ import annotations

from tvmgraph.core.types import TensorType as TensorType
from tvmgraph.dtypes import DType, bfloat16

Type = DType  # the class of all of them


class _Kind(type):
    """The class of classes whose instances are dtypes of some kinds."""

    kinds = ""

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, DType)
            and instance.kind in cls.kinds
            and (instance == bfloat16) == (cls.__name__ == "BFloat")
        )


class Bool(metaclass=_Kind):
    """The dtype of truth values."""

    kinds = "b"


class Int(metaclass=_Kind):
    """Dtypes of whole numbers with a sign."""

    kinds = "i"


class UInt(metaclass=_Kind):
    """Dtypes of whole numbers without one."""

    kinds = "u"


class Float(metaclass=_Kind):
    """Dtypes of real numbers, all but bfloat16."""

    kinds = "f"


class BFloat(metaclass=_Kind):
    """The dtype bfloat16."""

    kinds = "f"


class Complex(metaclass=_Kind):
    """Dtypes of complex numbers."""

    kinds = "c"


class ObjectKind:
    """What a Python object is that no tensor holds; programs compare it with dtypes.

    Args:
        name: Its name among the dtypes.
        text: What MindSpore prints.
    """

    __slots__ = ("name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"tvmgraph.{self.name}"


list_, tuple_ = ObjectKind("list_", "List"), ObjectKind("tuple_", "Tuple")
type_none = ObjectKind("type_none", "None")
