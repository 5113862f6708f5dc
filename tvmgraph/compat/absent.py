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
    "gradients are dense; COOTensor and CSRTensor hold sparse matrices": (
        "Coalesce", "SparseTensor", "SparseSlice",
        "SubAndFilter", "make_row_tensor*", "make_sparse_tensor",
        "row_tensor_*",
    ),
    "a program is split by ms.shard, nn.DistributedGradReducer or Model with "
    "set_auto_parallel_context; this is MindSpore's own way of it": (
        "AlltoAllVC", "NeighborExchangeV2", "Reshard", "all_gather_matmul",
        "rank_list_for_transform", "*_sliced_parameter", "load_distributed_checkpoint",
        "merge_pipeline_strategys", "transform_checkpoint*", "Pipeline*",
        "MicroBatchInterleaved", "VirtualDatasetCellTriple", "GradAccumulationCell",
        "build_searched_strategy", "restore_group_info_list", "parameter_broadcast",
        "sync_pipeline_shared_parameters", "set_comm_ops_inplace", "AdaSumBy*",
    ),
    "boost's approximations of training are not offered; amp, recompute and jit make it faster": (
        "set_boost",
    ),
    "parameter servers are not supported": ("*_ps_context", "Pull", "Push", "MapCacheIdx"),
    "it runs on Ascend processors only": (
        "BasicLSTMCell", "DropoutDoMask", "DropoutGenMask", "DynamicGRUV2", "DynamicRNN",
        "ScatterNonAliasingAdd", "multi_scale_deformable_attn_function",
        "rotated_iou", "LARSUpdate", "*fused_infer_attention*", "incre_flash_attention",
        "prompt_flash_attention", "moe_*", "nsa_*", "npu_*", "PagedAttention*",
        "ReshapeAndCache", "lightning_indexer", "ring_attention_update", "speed_fusion_attention",
        "sparse_flash_attention", "ApplyRotaryPosEmb", "matmul_reduce_scatter", "GroupTopk",
        "set_kernel_launch_*", "SparseApplyFtrlV2", "*sdc_detect*", "stress_detect", "hifloat8",
        "qint4x2", "OptTFT*", "TFT*", "TrainFaultTolerance", "thor", "*Thor", "GetNextSingleOp",
    ),
    "MindSpore has it for its own use": (
        "MapUniform", "P", "FusedAdaFactor", "FusedAdaFactorWithGlobalNorm",
        "FusedCastAdamWeightDecay", "FusedWeightScaleApplyMomentum", "recompute_block",
        "absolute_import", "tuple_getitem", "tuple_setitem", "list_getitem", "list_setitem",
        "dict_getitem", "dict_setitem", "env_*", "environ_*", "geswitch", "GeSwitch", "Merge",
        "UpdateState", "iter_converter", "ms_hasnext", "ms_next", "make_map_parameter", "J",
        "embed", "ref_to_embed", "switch_layer", "array_to_scalar", "scalar_to_array", "typeof",
        "get_vm_impl_fn", "is_sequence_*", "is_dynamic_sequence_*", "bool_and", "bool_eq",
        "bool_not", "bool_or", "string_concat", "string_eq", "tuple_div", "zip_operation",
        "SliceGetItem", "augassign_*", "broadcast_gradient_args", "DtypeToEnum", "PyExecute",
        "CopyWithSlice", "GetNext", "Reusing", "P2POp", "TCPStore", "TransposeView",
        "TransposeExtView", "SelectView", "arg_dtype_cast", "arg_handler", "array_ops",
        "array_reduce", "cpp_create_prim_instance_helper", "distribute",
        "gen_extend_func", "gen_ops_def", "gen_ops_prim", "get_backend", "get_rank",
        "get_world_size", "hastype", "in_dict", "inplace_sigmoid", "is_tensor_bool_cond",
        "isconstant", "is_", "is_not", "is_available", "is_initialized", "linalg_ops", "list_equal",
        "list_len", "make_dict", "make_list", "make_slice", "make_tuple", "merge", "not_in_dict",
        "other_ops", "pyboost_inner_prim", "reduce", "reduced_shape", "scalar_cast",
        "switch", "tail", "tensor_operator_registry", "tuple_equal", "tuple_len", "tuple_reversed",
        "vm_impl_registry", "broadcast",
    ),
    "encryption and obfuscation of models are not supported": (
        "obfuscate_*", "load_obf_*", "set_enc_*", "set_dec_mode",
    ),
    "networks are rewritten by changing their Cells; trees of their source are not offered": (
        "rewrite.*", "rewrite", "Node", "NodeType", "ScopedValue", "SymbolTree",
    ),
    "speech is found by models or packages of its own; any Python function fits Dataset.map": (
        "dataset.audio.Vad",
    ),
    "it needs a package of its own; text.PythonTokenizer takes that package's function": (
        "JiebaMode", "JiebaTokenizer", "SPieceTokenizer*", "SentencePiece*",
    ),
    "pages of Wikipedia are cleaned by any Python function given to Dataset.map": (
        "FilterWikipediaXML",
    ),
    "films are not supported; any Python function fits Dataset.map": (
        "DecodeVideo", "VideoDecoder", "read_video*",
    ),
    "transforms are Python functions, which need no plug-ins": ("Plugin",),
    "files of an object store are copied here first; MindDataset reads them": ("OBSMindDataset",),
    "other formats are read by their own datasets, whose rows mindrecord.FileWriter writes": (
        "mindrecord.*",
    ),
    "pipelines of data have neither caches nor callbacks nor a serial form": (
        "DSCallback", "DatasetCache", "WaitedDSCallback", "dataset.compare", "dataset.deserialize",
        "dataset.serialize", "dataset.show", "sync_wait_for_dataset",
    ),
    "Python's multiprocessing does it; tensors travel as NumPy arrays": (
        "multiprocessing.*", "multiprocessing",
    ),
    "streams and memory are those of CUDA, which has no such setting here": (
        "MemPool", "PluggableAllocator", "StreamLimitCtx", "communication_stream", "*_device_limit",
        "*_stream_limit", "memory_replay", "set_memory", "use_mem_pool", "ms_memory_recycle",
        "UntypedStorage", "swap_tensors",
    ),
    "threads are set by TVMGRAPH_NUM_THREADS or set_context(runtime_num_threads=...)": (
        "dispatch_threads_num", "set_cpu_affinity",
    ),
    "it is how MindSpore's compiler keeps track of Cells and Tensors": (
        "IGNORE_LIST", "T_destination", "add_pipeline_stage", "assign_value_cpp", "bprop_debug",
        "cache_shape", "cast_inputs", "cell_init_args",
        "compile_and_run", "compile_cache",
        "compile_phase", "compiled", "const_arg", "convert_bytes_to_tensor", "create_time",
        "data_sync", "delta_seed", "exist_names", "exist_objs", "flush_from_cache",
        "generate_scope", "get_func_graph_proto", "get_scope", "getitem_index_info", "global_cells",
        "hooks", "index_of_parent_", "init_finished", "init_flag", "inited_param", "is_init",
        "is_meta", "key", "offload_file_path", "param_info", "param_prefix",
        "parent_tensor_", "phase", "phase_cache", "run_construct", "set_cast_dtype",
        "set_const_arg", "set_device_address", "set_init_flag", "set_param_info",
        "setitem_index_info", "storage", "symbolic_shape", "total_instance_count",
        "untyped_storage", "update_cell_type", "virtual_flag",
        "wait_pipeline",
    ),
    "it shares parameters among devices": (
        "parallel_parameter_merge_net_dict", "parallel_parameter_name_list",
        "parameters_broadcast_dict", "pipeline_segment", "pipeline_stage", "set_broadcast_flag",
        "set_comm_fusion", "set_data_parallel", "remove_redundant_parameters", "layerwise_parallel",
        "parallel_optimizer",
    ),
    "MindSpore itself does not run it on the CPU": (
        "RNNTLoss", "batch_norm_gather_stats_with_counts", "delete_", "mint.nn.SyncBatchNorm",
        "pin_memory",
    ),
    "tensors move by to(device) or move_to, which return the moved one": ("to_", "offload"),
    "hooks are removed by the handle that registering them returned": ("remove_hook",),
    "Cell.register_forward_hook and Parameter.register_hook are there": (
        "register_parameter_forward_hook", "enable_backward_hook",
    ),
    "the precision is that of Cell.to_float and amp.auto_mixed_precision": (
        "get_mixed_precision_type", "set_mixed_precision_type",
    ),
    "tensors keep their place in the graph; stop_gradient returns one without": ("stop_gradient_",),
    "shapes vary with jit(dynamic=1), or with None in set_inputs": ("enable_dynamic", "Symbol"),
    "dtypes are values of their own; kinds of Python objects have none": (
        "Int", "QuantDtype", "float_", "int_", "uint", "list_", "number",
        "string", "tuple_", "type_none",
    ),
    "no processor here has 8-bit floats": ("float8_*",),
    "MINDIR files are read, not written; export writes modules, graph files and ONNX": (
        "export_split_mindir",
    ),
    "losses and parameters are recorded by SummaryCollector": (
        "SummaryLandscape", "FlopsUtilizationCollector", "flops_collection",
    ),
    "checkpoints are complete and in one file when saved; nothing of them is kept aside": (
        "mindio_preload", "set_mindio_server_info", "get_ckpt_path_with_strategy",
        "unified_safetensors", "load_segmented_checkpoints", "convert_checkpoint*",
        "rank_list_for_convert", "set_op_strategy_config",
    ),
    "hooks of saved tensors are not supported; recompute saves memory": (
        "saved_tensors_hooks", "register_saved_tensors_hooks",
    ),
    "devices are chosen by set_device": ("DeviceCtx",),
    "the profiler of compiled code writes traces; these belong to other devices": (
        "AicoreMetrics", "DynamicProfilerMonitor", "EnvProfiler", "ExportType", "HostSystem",
        "mstx",
    ),
    "dumps are chosen by set_context(save_graphs=...)": (
        "set_dump", "DumpGradient", "TensorDump", "tensordump",
    ),
    "second-order optimization (THOR) is not supported": ("ConvertModelUtils", "ConvertNetUtils"),
    "it looks into MindSpore's own processes": (
        "ExitByRequest", "MsDispatchMode", "RSCPluginHandle", "comm_exec_order_check", "dryrun",
        "runtime_execution_order_check",
    ),
    "operators of one's own are written in Python or TVM: ops.Custom, ops.custom_op": (
        "*RegOp", "CustomOpBuilder", "custom_info_register", "op_info_register", "ms_kernel",
        "kernel", "DataType", "PyFunc",
    ),
}  # fmt: skip


def explanation(name: str, where: str = "") -> tuple[str, str] | None:
    """Returns why a name of MindSpore is not here and the pattern that says it, or None.

    Args:
        name: The name.
        where: The module that lacks it, below ``tvmgraph``; patterns with a dot look at both.
    """
    whole = f"{where}.{name}" if where else name
    for why, patterns in ABSENT.items():
        for p in patterns:
            if fnmatch.fnmatchcase(whole if "." in p else name, p):
                return why, p
    return None


def reason(name: str, where: str = "") -> str | None:
    """Returns why a name of MindSpore is not here, or None; see :func:`explanation`.

    Args:
        name: The name.
        where: The module that lacks it, below ``tvmgraph``.
    """
    found = explanation(name, where)
    return None if found is None else found[0]


def not_found(
    where: str, name: str, known: Iterable[str], module: bool = False
) -> NotFoundError | NotFoundImportError:
    """Returns the error for a name that does not exist.

    Python replaces an AttributeError that ends ``from module import name`` by an ImportError
    without its text, so there it is an ImportError from the beginning.

    Args:
        where: The module that was asked, such as ``tvmgraph.ops``.
        name: The name.
        known: The names that it has.
        module: Whether a module is asked for.
    """
    why = reason(name, where.removeprefix("tvmgraph").removeprefix("."))
    names = {n.lower(): n for n in known if not n.startswith("_")}
    closeness = 0.85 if why else 0.75
    near = difflib.get_close_matches(name.lower(), names, 1, closeness) if name[:2] != "__" else []
    importing = stands_at("IMPORT_NAME" if module else "IMPORT_FROM")
    return (NotFoundImportError if importing else NotFoundError)(
        f"{where} has no {name!r}" + (f": {why}" if why else ""), at=user_source(),
        fix=f"did you mean {names[near[0]]}?" if near and not why else
            f"the nearest name here is {names[near[0]]}" if near else None,
    )  # fmt: skip


def stands_at(instruction: str) -> bool:
    """Whether the user's code is executing a bytecode instruction.

    Args:
        instruction: Its name in :mod:`dis`, such as ``"IMPORT_NAME"``.
    """
    frame = user_frame()
    if frame is None or frame.f_lasti < 0:
        return False
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == instruction


class AbsentFinder:
    """The last finder of modules: says why a module of MindSpore cannot be imported."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raises :class:`NotFoundImportError` where the user imports a module that has a reason.

        Args:
            name: Full name of the module.
            path, target: What Python passes to finders; not used.
        """
        where, _, leaf = name.rpartition(".")
        if where.partition(".")[0] == "tvmgraph" and stands_at("IMPORT_NAME"):
            below = where.removeprefix("tvmgraph").removeprefix(".")
            if reason(leaf, below) is not None:
                raise not_found(where, leaf, (), module=True)
