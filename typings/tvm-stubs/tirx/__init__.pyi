"""Loops and expressions of TVM, as a type checker should see them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.ir.expr import Expr as Expr
from tvm.ir.expr import TensorLoad
from tvm.ir.expr import Var as Var
from tvm.ir.prim.expr import EQ as EQ
from tvm.ir.prim.expr import GE as GE
from tvm.ir.prim.expr import GT as GT
from tvm.ir.prim.expr import LE as LE
from tvm.ir.prim.expr import LT as LT
from tvm.ir.prim.expr import NE as NE
from tvm.ir.prim.expr import Add as Add
from tvm.ir.prim.expr import And as And
from tvm.ir.prim.expr import Broadcast as Broadcast
from tvm.ir.prim.expr import Cast as Cast
from tvm.ir.prim.expr import Div as Div
from tvm.ir.prim.expr import FloatImm as FloatImm
from tvm.ir.prim.expr import FloorDiv as FloorDiv
from tvm.ir.prim.expr import FloorMod as FloorMod
from tvm.ir.prim.expr import IntImm as IntImm
from tvm.ir.prim.expr import Let as Let
from tvm.ir.prim.expr import Max as Max
from tvm.ir.prim.expr import Min as Min
from tvm.ir.prim.expr import Mod as Mod
from tvm.ir.prim.expr import Mul as Mul
from tvm.ir.prim.expr import Not as Not
from tvm.ir.prim.expr import Or as Or
from tvm.ir.prim.expr import Ramp as Ramp
from tvm.ir.prim.expr import Select as Select
from tvm.ir.prim.expr import Shuffle as Shuffle
from tvm.ir.prim.expr import Sub as Sub

from . import analysis as analysis
from . import op as op
from . import transform as transform
from .build import build as build
from .expr import CallEffectKind as CallEffectKind
from .expr import IterVar as IterVar
from .function import IndexMap as IndexMap
from .function import PrimFunc as PrimFunc
from .op import abs as abs
from .op import acos as acos
from .op import acosh as acosh
from .op import address_of as address_of
from .op import all as all
from .op import any as any
from .op import asin as asin
from .op import asinh as asinh
from .op import atan as atan
from .op import atan2 as atan2
from .op import atanh as atanh
from .op import bitwise_and as bitwise_and
from .op import bitwise_not as bitwise_not
from .op import bitwise_or as bitwise_or
from .op import bitwise_xor as bitwise_xor
from .op import call_extern as call_extern
from .op import call_intrin as call_intrin
from .op import call_llvm_intrin as call_llvm_intrin
from .op import call_llvm_pure_intrin as call_llvm_pure_intrin
from .op import call_pure_extern as call_pure_extern
from .op import ceil as ceil
from .op import ceildiv as ceildiv
from .op import copysign as copysign
from .op import cos as cos
from .op import cosh as cosh
from .op import div as div
from .op import erf as erf
from .op import exp as exp
from .op import exp2 as exp2
from .op import exp10 as exp10
from .op import floor as floor
from .op import floordiv as floordiv
from .op import floormod as floormod
from .op import fmod as fmod
from .op import hypot as hypot
from .op import if_then_else as if_then_else
from .op import indexdiv as indexdiv
from .op import indexmod as indexmod
from .op import isfinite as isfinite
from .op import isinf as isinf
from .op import isnan as isnan
from .op import isnullptr as isnullptr
from .op import ldexp as ldexp
from .op import likely as likely
from .op import log as log
from .op import log1p as log1p
from .op import log2 as log2
from .op import log10 as log10
from .op import max as max
from .op import max_value as max_value
from .op import min as min
from .op import min_value as min_value
from .op import nearbyint as nearbyint
from .op import nextafter as nextafter
from .op import popcount as popcount
from .op import pow as pow
from .op import power as power
from .op import register_intrin_lowering as register_intrin_lowering
from .op import reinterpret as reinterpret
from .op import round as round
from .op import rsqrt as rsqrt
from .op import shift_left as shift_left
from .op import shift_right as shift_right
from .op import sigmoid as sigmoid
from .op import sin as sin
from .op import sinh as sinh
from .op import sqrt as sqrt
from .op import tan as tan
from .op import tanh as tanh
from .op import trunc as trunc
from .op import truncdiv as truncdiv
from .op import truncmod as truncmod
from .stmt import AssertStmt as AssertStmt
from .stmt import AttrStmt as AttrStmt
from .stmt import Bind as Bind
from .stmt import BufferRegion as BufferRegion
from .stmt import BufferStore as BufferStore
from .stmt import DeclBuffer as DeclBuffer
from .stmt import Evaluate as Evaluate
from .stmt import For as For
from .stmt import ForKind as ForKind
from .stmt import IfThenElse as IfThenElse
from .stmt import SeqStmt as SeqStmt
from .stmt import Stmt as Stmt
from .stmt import While as While

Buffer = Var

class AllocBuffer(Stmt):
    buffer: Buffer
    annotations: Mapping[str, Any]
    span: Any
    def __init__(
        self, buffer: Buffer, annotations: Mapping[str, Any] | None = None, span: Any = None
    ) -> None: ...

def BufferLoad(buffer: Expr, indices: Sequence[Expr | int], span: Any = None) -> TensorLoad: ...
def const(value: float, dtype: str | None = None, span: Any = None) -> Expr: ...
def is_buffer_var(value: object) -> bool: ...
def decl_buffer(
    shape: Any,
    dtype: Any = None,
    name: str = "buffer",
    data: Expr | None = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "",
    data_alignment: int = -1,
    offset_factor: int = 0,
    span: Any = None,
    layout: str = "default",
) -> Buffer: ...
