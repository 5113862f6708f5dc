"""Names of MindSpore that are not here, each with the reason; and errors that say so.

A row holds what MindSpore calls such names, as patterns of :mod:`fnmatch`. A name without a row is
either misspelled, in which case the error names the nearest one that exists, or not built yet.
"""

from __future__ import annotations

import difflib
import dis
import fnmatch
from collections.abc import Iterable, Mapping

from tvmgraph.errors import NotFoundError, NotFoundImportError, user_frame, user_source

#: Reason -> names, with what to use instead.
ABSENT: Mapping[str, tuple[str, ...]] = {
    "sparse tensors are not supported; use dense ones": (
        "COOTensor", "CSRTensor", "RowTensor*", "SparseTensor*", "SparseToDense", "Sparse*",
        "FusedSparse*", "SubAndFilter", "coo_*", "csr_*", "coo2csr", "csr2coo", "dense_to_sparse_*",
        "make_coo_tensor", "make_csr_tensor", "make_row_tensor*", "make_sparse_tensor",
        "row_tensor_*", "coalesce", "to_coo", "to_csr",
    ),
    "it needs several devices, which are not supported yet": (
        "AllGather*", "AllReduce", "AlltoAll*", "BatchISendIRecv", "Broadcast", "Barrier",
        "CollectiveGather", "CollectiveScatter", "NeighborExchange*", "Receive", "Reduce",
        "ReduceScatter*", "Reshard", "Send", "all_gather*", "all_reduce", "all_to_all*", "barrier",
        "batch_isend_irecv", "broadcast_object_list", "destroy_process_group", "distributed",
        "gather_into_tensor", "gather_object", "get_global_rank", "get_group_rank",
        "get_process_group_ranks", "init_process_group", "irecv", "isend", "new_group", "recv*",
        "reduce_scatter*", "scatter_object_list", "scatter_tensor", "send*", "communication",
        "parallel", "shard", "reshard", "Layout", "rank_list_for_transform", "*_sliced_parameter",
        "load_distributed_checkpoint", "merge_pipeline_strategys", "transform_checkpoint*",
        "*_auto_parallel_context", "*_algo_parameters", "DistributedGradReducer", "Pipeline*",
        "MicroBatchInterleaved", "VirtualDatasetCellTriple", "GradAccumulationCell",
        "build_searched_strategy", "restore_group_info_list", "parameter_broadcast",
        "sync_pipeline_shared_parameters", "set_comm_ops_inplace", "AdaSumBy*",
    ),
    "parameter servers are not supported": ("*_ps_context", "Pull", "Push", "MapCacheIdx"),
    "it runs on Ascend processors only": (
        "*fused_infer_attention*", "incre_flash_attention", "prompt_flash_attention", "moe_*",
        "nsa_*", "npu_*", "NPU*", "PagedAttention*", "ReshapeAndCache", "lightning_indexer",
        "ring_attention_update", "speed_fusion_attention", "sparse_flash_attention",
        "ApplyRotaryPosEmb", "all_gather_matmul", "matmul_reduce_scatter", "GroupTopk",
        "set_kernel_launch_*", "*sdc_detect*", "stress_detect", "hifloat8", "qint4x2", "OptTFT*",
        "TFT*", "TrainFaultTolerance", "thor", "*Thor", "train_thor", "GetNextSingleOp", "ascend*",
    ),
    "MindSpore has it for its own use": (
        "absolute_import", "tuple_getitem", "tuple_setitem", "list_getitem", "list_setitem",
        "dict_getitem", "dict_setitem", "env_*", "environ_*", "geswitch", "GeSwitch", "Merge",
        "UpdateState", "iter_converter", "ms_hasnext", "ms_next", "make_map_parameter", "J",
        "embed", "ref_to_embed", "switch_layer", "array_to_scalar", "scalar_to_array", "typeof",
        "get_vm_impl_fn", "is_sequence_*", "is_dynamic_sequence_*", "bool_and", "bool_eq",
        "bool_not", "bool_or", "string_concat", "string_eq", "tuple_div", "zip_operation",
        "SliceGetItem", "augassign_*", "broadcast_gradient_args", "DtypeToEnum", "PyExecute",
    ),
    "encryption and obfuscation of models are not supported": (
        "obfuscate_*", "load_obf_*", "set_enc_*", "set_dec_mode",
    ),
}  # fmt: skip


def reason(name: str) -> str | None:
    """Returns why a name of MindSpore is not here, or None when nobody said."""
    for why, patterns in ABSENT.items():
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            return why
    return None


def not_found(where: str, name: str, known: Iterable[str]) -> NotFoundError | NotFoundImportError:
    """Returns the error for a name that does not exist.

    Python replaces an AttributeError that ends ``from module import name`` by an ImportError
    without its text, so there it is an ImportError from the beginning.

    Args:
        where: The module that was asked, such as ``tvmgraph.ops``.
        name: The name.
        known: The names that it has.
    """
    why = reason(name)
    names = {} if why else {n.lower(): n for n in known if not n.startswith("_")}
    near = difflib.get_close_matches(name.lower(), names, 1, 0.75)
    return (NotFoundImportError if _is_importing() else NotFoundError)(
        f"{where} has no {name!r}" + (f": {why}" if why else ""), at=user_source(),
        fix=f"did you mean {names[near[0]]}?" if near else None,
    )  # fmt: skip


def _is_importing() -> bool:
    """Whether the user's code stands at ``from ... import``."""
    frame = user_frame()
    if frame is None or frame.f_lasti < 0:
        return False
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"
