"""Walks over structures of TVM, as a type checker should see them."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, TypeAlias

from tvm_ffi.access_path import AccessPath
from tvm_ffi.core import Object

#: What is called with the nodes of some classes. Of which classes is said beside it, by value.
_Entry: TypeAlias = tuple[type | tuple[type, ...], Callable[[Any], object]]
_Callbacks: TypeAlias = _Entry | Sequence[_Entry] | Callable[[Any], object]
_EntryOfRegion: TypeAlias = tuple[type | tuple[type, ...], Callable[[Any, DefRegionKind], object]]
_CallbacksOfRegions: TypeAlias = (
    _EntryOfRegion | Sequence[_EntryOfRegion] | Callable[[Any, DefRegionKind], object]
)

class WalkOrder(IntEnum):
    PREORDER = 0
    POSTORDER = 1

class WalkResult(IntEnum):
    ADVANCE = 0
    SKIP = 1

class InplaceMode(IntEnum):
    DISALLOW = 0
    ALLOW = 1

class DefRegionKind(IntEnum):
    NONE = 0
    DEF_PATTERN = 1
    DEF_SIMPLE = 2

class VisitInterrupt(Object):
    value: Any
    def __init__(self, value: Any = None) -> None: ...

class StructuralKey(Object):
    key: Any
    def __init__(self, key: Any) -> None: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class StructuralVisitor(Object):
    def visit(self, value: Any) -> VisitInterrupt | None: ...
    def default_visit(self, value: Any) -> VisitInterrupt | None: ...

class StructuralMutator(Object):
    def mutate(self, value: Any) -> Any: ...
    def default_mutate(self, value: Any) -> Any: ...

def structural_equal(
    lhs: Any, rhs: Any, map_free_vars: bool = False, skip_tensor_content: bool = False
) -> bool: ...
def structural_hash(
    value: Any, map_free_vars: bool = False, skip_tensor_content: bool = False
) -> int: ...
def get_first_structural_mismatch(
    lhs: Any, rhs: Any, map_free_vars: bool = False, skip_tensor_content: bool = False
) -> tuple[AccessPath, AccessPath] | None: ...
def structural_walk(
    root: Any,
    callbacks: _Callbacks = (),
    with_def_region_kind: _CallbacksOfRegions = (),
    order: str | WalkOrder = "post",
) -> VisitInterrupt | None: ...
def structural_map(
    root: Any,
    callbacks: _Callbacks = (),
    with_def_region_kind: _CallbacksOfRegions = (),
    order: str | WalkOrder = "post",
) -> Any: ...
def structural_visit(
    root: Any, callbacks: Sequence[tuple[Any, Any]] | tuple[Any, Any] | Callable[..., Any] = ()
) -> VisitInterrupt | None: ...
def structural_mutate(
    root: Any, callbacks: Sequence[tuple[Any, Any]] | tuple[Any, Any] | Callable[..., Any] = ()
) -> Any: ...
