"""What MindSpore programs tell its compiler, taken without effect."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

from tvmgraph.ops.compositions import add_flags

_SETTINGS = """AMP_ENABLE_ALL_FG AUTO_PASSES_OPTIMIZE_PATH BOOST_PARSE CHECK_BPROP
    CHECK_PASS_NODE_SCOPE COMBINE_LIKE_GRAPHS COMPILE_DEBUG_MODE COMPILE_PRINT COMPILE_PROFILE
    COMPILE_PROFILE_FINISH_ACTION DDE_ONLY_MARK DEBUG_LEVEL DUMP_IR_CONFIG DUMP_IR_DDE_DETAIL
    DUMP_IR_META_DSL DUMP_VALIDATE_BEFORE_RESET_ID ENABLE_DDE ENABLE_ELIMINATE_UNUSED_PARAMS
    ENABLE_FIX_CODE_LINE ENABLE_HYPER_OFFLOAD_SLIDE ENABLE_RECOMPUTE_BEFORE_INLINE
    FALLBACK_FORCE_ANY FALLBACK_SUPPORT_LIST_DICT_INPLACE FOR_HALF_UNROLL GRAD_FOR_SCALAR
    GRAD_JIT_FILTER GREED_PARSE IF_PARALLEL_CALL JIT_ENABLE_AUGASSIGN_INPLACE
    JIT_ENABLE_AUGASSIGN_INPLACE_FALLBACK NOT_WAIT_BRANCH_EVAL PIJIT_SUBGRAPH_BREAK_OPTIMIZE
    PRE_LIFT PUT_ALL_CNODE_INTO_ORDER_LIST RECORD_MEMORY RECURSIVE_EVAL SINGLE_EVAL
    STRICT_CHECK_PARENT_CONTEXT TRACE_LABEL_WITH_UNIQUE_ID TRAVERSE_SUBSTITUTIONS_MODE"""
#: Settings of MindSpore's compiler, all empty at first.
compile_config = SimpleNamespace(**dict.fromkeys(_SETTINGS.split(), ""))
#: Gives functions flags that MindSpore's compiler reads.
core = add_flags
#: What MindSpore's compiler makes of ``len``.
ms_len = len


class Signature(NamedTuple):
    """What MindSpore's compiler is told of an operator's argument; here types say it.

    Attributes:
        name: The argument.
        rw: How it is used, of ``sig_rw``.
        kind: How it is given, of ``sig_kind``.
        default: Its default.
        dtype: A name that arguments of one dtype share, of ``sig_dtype``.
    """

    name: str
    rw: str = "RW_READ"
    kind: str = "KIND_POSITIONAL_KEYWORD"
    default: object = "KIND_EMPTY_DEFAULT_VALUE"
    dtype: str = "T_EMPTY_DEFAULT_VALUE"


make_sig = Signature
sig_rw, sig_kind, sig_dtype = (
    SimpleNamespace(**{name: name for name in names.split()})
    for names in (
        "RW_READ RW_WRITE RW_REF RW_EMPTY_DEFAULT_VALUE",
        """KIND_POSITIONAL_KEYWORD KIND_VAR_POSITIONAL KIND_KEYWORD_ONLY KIND_VAR_KEYWARD
        KIND_EMPTY_DEFAULT_VALUE""",
        "T T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T_EMPTY_DEFAULT_VALUE",
    )
)
