"""Checkpoints: files of MindSpore's format or safetensors, written all at once or not at all.

They are written from one format to another, loaded aside, and parameters of other programs read.
"""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from re import compile as pattern
from typing import Any

import numpy as np
import xxhash
from safetensors.numpy import save_file

from tvmgraph import context as context  # programs also import it from here
from tvmgraph import dtypes, partial
from tvmgraph.compat.paths import as_package
from tvmgraph.core.arguments import PathLike
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.distributed import engine
from tvmgraph.distributed.sharded import shards_of
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    ShapeError,
    TvmgraphError,
    either,
    reject,
    require_offered,
    warn_user,
)
from tvmgraph.nn.cell import Cell
from tvmgraph.train import mindspore_checkpoint
from tvmgraph.train.mindspore_checkpoint import DamagedError

__all__ = [
    "CheckpointError", "async_ckpt_thread_status", "ckpt_to_safetensors", "load_checkpoint",
    "load_checkpoint_async", "load_param_into_net", "load_torch", "safetensors_to_ckpt",
    "save_checkpoint", "torch_names",
]  # fmt: skip

# names of dtypes in a safetensors header
_NAMES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
    "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16",
    "F32": "float32", "F64": "float64", "C64": "complex64",
}  # fmt: skip
_ORDER = "order"  # metadata entry with the names as they were saved; the format sorts them
_DIGEST = "digest"  # metadata entry with the digest of everything else
_TEXT = "text:"  # prefix of metadata entries that append_dict put there


class CheckpointError(TvmgraphError, ValueError):
    """A checkpoint file is damaged, or does not fit the network."""


def _path(file: Any, format: str) -> Path:
    if format not in ("ckpt", "safetensors"):
        reject(ArgumentError, "save_checkpoint", f"format cannot be {format!r}",
                fix='use "ckpt", the format of MindSpore, or "safetensors"')  # fmt: skip
    path = Path(os.fspath(file))
    return path if path.suffix == f".{format}" else path.with_name(f"{path.name}.{format}")


def _entries(save_obj: object, choice: Callable[[str], bool] | None) -> dict[str, Tensor]:
    """Returns what is saved by name.

    Raises:
        DTypeError: if it is no Cell, dict or list.
        ArgumentError: if two parameters have one name.
    """
    pairs: list[tuple[object, object]]
    if isinstance(save_obj, Cell):
        if choice is None:
            save_obj.check_names_and_refresh_name()
            save_obj.check_names()
        pairs = [(p.name, p) for p in save_obj.get_parameters()]
    elif isinstance(save_obj, Mapping):
        pairs = list(save_obj.items())
    elif isinstance(save_obj, (list, tuple)):
        pairs = [
            (e.get("name"), e.get("data"))
            if isinstance(e, Mapping)
            else (getattr(e, "name", None), e)
            for e in save_obj
        ]
    else:
        reject(DTypeError, "save_checkpoint", f"a {type(save_obj).__name__} cannot be saved",
                fix="give a Cell, a dict of tensors by name, or a list of Parameters")  # fmt: skip
    found: dict[str, Tensor] = {}
    for name, value in pairs:
        if not isinstance(name, str) or not isinstance(value, Tensor):
            reject(DTypeError, "save_checkpoint", "every entry needs a name and a Tensor",
                    f"{name!r}: {type(value).__name__}")  # fmt: skip
        if name in found and found[name] is not value:
            reject(ArgumentError, "save_checkpoint", f"two parameters are named {name!r}",
                    fix="give them different names")  # fmt: skip
        if choice is None or choice(name):
            found[name] = value
    return found


def _appended(
    extra: Mapping[str, object] | None, taken: Iterable[str]
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Splits ``append_dict`` into tensors and texts."""
    tensors: dict[str, Tensor] = {}
    texts: dict[str, str] = {}
    for name, value in (extra or {}).items():
        if name in taken:
            reject(ArgumentError, "save_checkpoint", f"append_dict repeats the name {name!r}")
        if isinstance(value, str):
            texts[_TEXT + name] = value
        elif isinstance(value, Tensor):
            tensors[name] = value
        elif isinstance(value, (bool, int, float, np.generic)):
            number = np.asarray(value)
            single = type(value) is float  # MindSpore writes Python's as float32
            tensors[name] = Tensor(number.astype(np.float32) if single else number)
        else:
            reject(DTypeError, "save_checkpoint",
                    f"append_dict[{name!r}] is a {type(value).__name__}",
                    fix="use numbers, strings, Tensors or Parameters")  # fmt: skip
    return tensors, texts


def save_checkpoint(
    save_obj: object,
    ckpt_file_name: object,
    integrated_save: bool = True,
    async_save: bool | str = False,
    append_dict: Mapping[str, object] | None = None,
    enc_key: bytes | None = None,
    enc_mode: str = "AES-GCM",
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    format: str = "ckpt",
    **options: object,
) -> None:
    """Writes parameters to a file.

    The file appears under its name only when it is complete; an older one stays until then.
    Parameters that are split over processes are gathered one after the other, by all processes
    together, and rank 0 writes; what is loaded later may be split in another way.

    Args:
        save_obj: A Cell (a network, an optimizer with its state, or a training cell with both), a
            dict of tensors by name, or a list of Parameters or of ``{"name":, "data":}``.
        ckpt_file_name: Where to; the suffix is added if it is missing.
        integrated_save: Kept for MindSpore programs; there is one device.
        async_save: A flag, ``"thread"`` or ``"process"``, kept for MindSpore programs; the file is
            complete when the call returns.
        append_dict: Numbers, strings and tensors to save as well, such as the epoch.
        enc_key, enc_mode: Files are not encrypted; MindSpore's defaults are taken.
        choice_func: Tells by name whether a parameter is saved.
        crc_check: Kept for MindSpore programs; the checksum is always written.
        format: The format, and the suffix: ``"ckpt"`` is MindSpore's (with the checksum of its
            ``crc_check=True``), ``"safetensors"`` the one that other programs read.

    Raises:
        DTypeError: if something cannot be saved.
        ArgumentError: if two entries have one name, or an option or a word is unknown.

    Example:
        >>> ms.save_checkpoint(nn.Dense(2, 3), "/tmp/dense.ckpt", append_dict={"epoch": 1})
        >>> int(ms.load_checkpoint("/tmp/dense.ckpt")["epoch"])
        1
    """
    if isinstance(async_save, str) and async_save not in ("thread", "process"):
        reject(ArgumentError, "save_checkpoint",
               f"async_save must be a bool, 'thread' or 'process', not {async_save!r}")  # fmt: skip
    for name, value in {"enc_key": enc_key, **options}.items():
        if name not in ("enc_key", "remove_redundancy") or value:
            reject(ArgumentError, "save_checkpoint", f"the option {name}={value!r} does not exist")
    path = _path(ckpt_file_name, format)
    entries = _entries(save_obj, choice_func)
    tensors, texts = _appended(append_dict, entries)
    if any(shards_of(t) is not None for t in entries.values()):
        if engine.world().rank:  # rank 0 writes what all gather
            for tensor in entries.values():
                if shards_of(tensor) is not None:
                    tensor.asnumpy()
            engine.barrier()
            return
        entries = {n: Tensor(t.asnumpy()) for n, t in entries.items()}
        save_checkpoint(entries, path, append_dict=append_dict, format=format)
        engine.barrier()
        return
    raw = {}
    for name, tensor in (entries | tensors).items():
        kind = tensor.dtype.numpy.name
        if format == "safetensors" and kind not in _NAMES.values():
            reject(DTypeError, "save_checkpoint", f"{name!r} is {kind}, which the format lacks")
        raw[name] = np.asarray(tensor.asnumpy(), order="C")
    if format == "ckpt":
        named = {name.removeprefix(_TEXT): text for name, text in texts.items()}
        _replace(path, lambda temporary: _save_as_mindspore(raw | named, temporary))
        return
    order = json.dumps([*raw, *(name.removeprefix(_TEXT) for name in texts)])
    metadata = {"format": "pt", "producer": "tvmgraph", _ORDER: order, **texts}
    metadata[_DIGEST] = _digest(raw, metadata)
    _replace(path, lambda temporary: save_file(raw, temporary, metadata))


def _save_as_mindspore(entries: Mapping[str, np.ndarray | str], name: str) -> None:
    with open(name, "wb") as file:
        mindspore_checkpoint.write(entries, file)


def _digest(raw: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> str:
    """The digest of names, dtypes, shapes, elements and texts, which finds every accident."""
    found = xxhash.xxh3_128()
    facts = {name: (array.dtype.name, array.shape) for name, array in raw.items()}
    texts = {name: text for name, text in metadata.items() if name != _DIGEST}
    found.update(json.dumps([facts, texts], sort_keys=True).encode())
    for name in sorted(raw):
        found.update(np.ascontiguousarray(raw[name]).reshape(-1).view(np.uint8))  # pyright: ignore[reportArgumentType]
    return found.hexdigest()


def _replace(path: Path, write: Callable[[str], None]) -> None:
    """Writes beside the target and renames, so that no reader sees half a file."""
    with partial.replacing(path) as part:
        write(str(part))
        with open(part, "rb") as file:
            os.fsync(file.fileno())


def _read(path: Path, op: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Reads a file completely, or says what is wrong with it.

    Raises:
        CheckpointError: if it is missing or damaged.
    """
    if not path.is_file():
        reject(CheckpointError, op, f"there is no file {path}", fix="check the name and suffix")
    content = path.read_bytes()
    of_mindspore = content[:1] == b"\n" and content[8:9] != b"{"
    try:
        return _read_mindspore(content) if of_mindspore else _read_safetensors(content, op)
    except DamagedError as e:
        reject(CheckpointError, op, f"{path.name} is damaged: {e}",
                fix="nothing was loaded; write the checkpoint again")  # fmt: skip


def _read_mindspore(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    found = mindspore_checkpoint.read(content)
    texts = {_TEXT + k: v for k, v in found.items() if isinstance(v, str)}
    arrays = {k: v for k, v in found.items() if not isinstance(v, str)}
    return arrays, {_ORDER: json.dumps([*found]), **texts}


def _read_safetensors(content: bytes, op: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    if len(content) < 8:
        raise DamagedError(f"it has {len(content)} bytes, less than a header")
    start = 8 + int.from_bytes(content[:8], "little")
    if start > len(content):
        raise DamagedError("it ends inside the header, or is no safetensors file")
    try:
        header = json.loads(content[8:start])
        metadata = header.pop("__metadata__", {})
        found = {n: _array(content, start, n, entry, op) for n, entry in header.items()}
    except (DamagedError, CheckpointError):
        raise
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DamagedError("its header is not that of a safetensors file") from None
    if metadata.get(_DIGEST, wanted := _digest(found, metadata)) != wanted:
        raise DamagedError("it was changed since it was written")
    return found, metadata


def _array(content: bytes, base: int, name: str, entry: dict[str, Any], op: str) -> np.ndarray:
    """Returns a parameter, whose place is counted from ``base`` on."""
    start, end = (base + offset for offset in entry["data_offsets"])
    if end > len(content):
        raise DamagedError(
            f"it ends inside parameter {name!r}, {end - len(content)} bytes before that ends"
        )
    if entry["dtype"] not in _NAMES:
        reject(CheckpointError, op, f"{name!r} has the unknown dtype {entry['dtype']}")
    kind, shape = dtypes.dtype_of(_NAMES[entry["dtype"]]).numpy, entry["shape"]
    if end - start != math.prod(shape) * kind.itemsize:
        raise DamagedError(f"parameter {name!r} has {end - start} bytes for shape {shape}")
    return np.frombuffer(content[start:end], kind).reshape(shape)


def load_checkpoint(
    ckpt_file_name: PathLike,
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: Any = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    specify_prefix: Any = None,
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    remove_redundancy: bool = False,
    format: str = "ckpt",
    **options: object,
) -> dict[str, Any]:
    """Reads a checkpoint of MindSpore's or any safetensors file, whatever its suffix.

    Args:
        ckpt_file_name: The file.
        net: A network to load into as well.
        strict_load: See :func:`load_param_into_net`.
        filter_prefix: Names that start with it (a string or a list) are left out.
        dec_key, dec_mode: Files are not encrypted; MindSpore's defaults are taken.
        specify_prefix: Only names that start with it are taken.
        choice_func: Tells by name whether a parameter is taken.
        crc_check, remove_redundancy: Kept for MindSpore programs: a checksum that a file has is
            always checked.
        format: ``"ckpt"`` or ``"safetensors"``; the content of the file tells which it is.

    Returns:
        Parameters by name; texts of ``append_dict`` as strings.

    Raises:
        CheckpointError: if the file is missing or damaged; the message names the parameter.
        ArgumentError: for a ``dec_key``, as files are not encrypted, any other option, an empty
            prefix, or if nothing in the file is wanted.

    Example:
        >>> ms.save_checkpoint({"a": Tensor([1.0])}, "/tmp/a.ckpt")
        >>> ms.load_checkpoint("/tmp/a.ckpt")["a"].asnumpy()
        array([1.], dtype=float32)
    """
    op = "load_checkpoint"
    require_offered(op, {"dec_key": dec_key, **options})
    if format not in ("ckpt", "safetensors"):
        reject(ArgumentError, op, f"format must be 'ckpt' or 'safetensors', not {format!r}")
    entries, metadata = _read(Path(os.fspath(ckpt_file_name)), op)
    leave = _prefixes(op, "filter_prefix", filter_prefix)
    only = _prefixes(op, "specify_prefix", specify_prefix)
    found: dict[str, object] = {}

    def wanted(name: str) -> bool:
        chosen = not name.startswith(leave) if leave else True
        chosen = chosen and (name.startswith(only) if only else True)
        return chosen and (choice_func is None or bool(choice_func(name)))

    for name in filter(wanted, entries):
        found[name] = Parameter(Tensor(entries[name]), name)
    named = {k[len(_TEXT) :]: v for k, v in metadata.items() if k.startswith(_TEXT)}
    texts = {name: text for name, text in named.items() if wanted(name)}
    if entries and not found and not texts:
        reject(ArgumentError, op, f"none of the {len(entries)} parameters in the file is wanted",
               f"filter_prefix={filter_prefix!r}, specify_prefix={specify_prefix!r}",
               f"the file has {', '.join(list(entries)[:5])}, ...")  # fmt: skip
    if net is not None:
        load_param_into_net(net, found, strict_load)
    found |= texts
    order = [name for name in json.loads(metadata.get(_ORDER, "[]")) if name in found]
    return {name: found[name] for name in dict.fromkeys([*order, *found])}


def _prefixes(op: str, name: str, value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Returns the prefixes of names that an option gives."""
    found = (value,) if isinstance(value, str) else tuple(value or ())
    if "" in found:
        reject(ArgumentError, op, f"{name} must not be empty: all names begin with nothing")
    return found


def load_param_into_net(
    net: Cell,
    parameter_dict: Mapping[str, Any],
    strict_load: bool = False,
    remove_redundancy: bool = False,
) -> tuple[list[str], list[str]]:
    """Copies parameters into a network (or optimizer), all of them or none.

    A parameter without a value gets that of a larger network in which this one was saved: the
    entry of its name behind a prefix such as ``network.``, of which a warning tells.

    Args:
        net: The Cell.
        parameter_dict: Tensors by name; strings are for nobody.
        strict_load: Whether dtypes must be equal, and names, too; otherwise floats are converted
            to floats and integers to integers.
        remove_redundancy: Kept for MindSpore programs; there is one device.

    Returns:
        Names of the network without a value, and names of the dict without a parameter.

    Raises:
        DTypeError: if an argument has the wrong class, or dtypes do not fit.
        ShapeError: if a shape differs; nothing is changed then.

    Example:
        >>> net = nn.Dense(2, 3)
        >>> ms.load_param_into_net(net, {"weight": ops.ones((3, 2))})
        (['bias'], [])
    """
    op = "load_param_into_net"
    if not isinstance(net, Cell):
        reject(DTypeError, op, f"net must be a Cell, not {type(net).__name__}")
    if not isinstance(parameter_dict, Mapping):
        reject(DTypeError, op, f"parameter_dict is a {type(parameter_dict).__name__}, no dict",
                fix="pass what load_checkpoint returned")  # fmt: skip
    for name, value in parameter_dict.items():
        if not isinstance(value, (str, Tensor)):
            reject(DTypeError, op, f"the value of {name!r} is a {type(value).__name__}")
    targets = net.parameters_dict()
    values = {k: v for k, v in parameter_dict.items() if not isinstance(v, str)}
    given = {name: value for name, value in values.items() if name in targets}
    if not strict_load:
        given |= _behind_prefixes([n for n in targets if n not in values], values)
    ready = [(targets[n], _fitting(op, targets[n], v, strict_load)) for n, v in given.items()]
    for target, value in ready:
        target.set_data(value)
    unused = [name for name in parameter_dict if name not in targets]
    return [name for name in targets if name not in given], unused


def _behind_prefixes(missing: list[str], values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns values of parameters whose names stand behind a prefix.

    One prefix is tried after the other, and each for all parameters that still have no value.
    """
    found: dict[str, Tensor] = {}
    prefixes: list[str] = []
    for name in missing:
        longer = next((k for k in values if k.endswith(f".{name}")), None)
        if name in found or longer is None:
            continue
        prefix = longer.removesuffix(name)
        prefixes.append(prefix)
        found |= {n: values[prefix + n] for n in missing
                  if n not in found and prefix + n in values}  # fmt: skip
    if prefixes:
        warn_user(
            f"load_param_into_net: {len(found)} parameters get values whose names begin with "
            f"{', '.join(map(repr, prefixes))} in addition"
        )
    return found


def _fitting(op: str, target: Parameter, value: Tensor, strict: bool) -> Tensor:
    """Returns the value in the target's dtype.

    Raises:
        DTypeError: if its dtype does not fit.
        ShapeError: if its shape differs.
    """
    got = f"checkpoint={value.aval}, network={target.aval}"
    nothing = "nothing was loaded; check that the file belongs to this network"
    if value.shape != target.shape:
        reject(ShapeError, op,
                f"parameter {target.name!r} has another shape", got, nothing)  # fmt: skip
    both_floats = value.dtype.is_float and target.dtype.is_float
    both_integers = value.dtype.is_integer and target.dtype.is_integer
    if value.dtype is not target.dtype and (strict or not (both_floats or both_integers)):
        reject(either(DTypeError, RuntimeError), op,
                f"parameter {target.name!r} has another dtype", got, nothing)  # fmt: skip
    return Tensor(value.asnumpy(), target.dtype)  # storage of its own


def _update_param(param: Parameter, new_param: Tensor, strict_load: bool = False) -> None:
    """Gives a parameter the value of another, as programs with a way of loading of their own do.

    Raises:
        DTypeError: if its dtype does not fit.
        ShapeError: if its shape differs.
    """
    param.set_data(_fitting("load_param_into_net", param, new_param, strict_load))


def _load_dismatch_prefix_params(
    net: Cell, parameter_dict: Mapping[str, Tensor], param_not_load: list[str], strict_load: bool
) -> None:
    """Gives parameters the values whose names have a prefix, and takes them out of the list."""
    targets = net.parameters_dict()
    for name, value in _behind_prefixes(param_not_load, parameter_dict).items():
        _update_param(targets[name], value, strict_load)
        param_not_load.remove(name)


#: MindSpore's words for dtypes in files.
tensor_to_ms_type = {str(d): d for d in dtypes.ALL}
tensor_to_np_type = {name: d.numpy for name, d in tensor_to_ms_type.items()}


__path__, __getattr__ = as_package(__name__, "_front", "compat.whole")  # a package in MindSpore


# ---- between formats ----------------------------------------------------------------------------


def ckpt_to_safetensors(file_path: object, save_path: object = None,
                        name_map: Mapping[str, str] | None = None,
                        file_name_regex: str | None = None,
                        processes_num: int = 1) -> None:  # fmt: skip
    """Writes safetensors files of checkpoints.

    Args:
        file_path: A checkpoint, or a folder that is searched for them.
        save_path: Folder of the new files; that of the old ones unless told.
        name_map: New names of parameters.
        file_name_regex: Which files of a folder are taken.
        processes_num: Kept for MindSpore programs; files are converted one after another.
    """
    _convert(file_path, save_path, name_map, file_name_regex, "ckpt", "safetensors")


def safetensors_to_ckpt(file_path: object, save_path: object = None,
                        name_map: Mapping[str, str] | None = None,
                        file_name_regex: str | None = None,
                        processes_num: int = 1) -> None:  # fmt: skip
    """Writes checkpoints of safetensors files, the reverse of :func:`ckpt_to_safetensors`.

    Args:
        file_path: A file, or a folder of them.
        save_path: Where the checkpoints go; by default beside the files.
        name_map: New names of parameters by their old ones.
        file_name_regex: Which files of a folder are converted; by default all.
        processes_num: Kept for MindSpore programs; files are converted one after the other.
    """
    _convert(file_path, save_path, name_map, file_name_regex, "safetensors", "ckpt")


def _convert(file_path: Any, save_path: Any, name_map: Mapping[str, str] | None,
             regex: str | None, old: str, new: str) -> None:  # fmt: skip
    place = Path(file_path)
    files = sorted(place.rglob(f"*.{old}")) if place.is_dir() else [place]
    files = [f for f in files if regex is None or pattern(regex).search(f.name)]
    if not files:
        raise ArgumentError(f"no .{old} files in {place}", op=f"{old}_to_{new}")
    for file in files:
        folder = file.parent if save_path is None else Path(save_path)
        folder.mkdir(parents=True, exist_ok=True)
        entries = load_checkpoint(str(file), format=old)
        renamed = {(name_map or {}).get(name, name): value for name, value in entries.items()}
        save_checkpoint(renamed, str(folder / f"{file.stem}.{new}"), format=new)


def load_checkpoint_async(ckpt_file_name: PathLike, net: Cell | None = None,
                          strict_load: bool = False, filter_prefix: object = None,
                          dec_key: object = None, dec_mode: str = "AES-GCM",
                          specify_prefix: object = None,
                          choice_func: Callable[[str], bool] | None = None
                          ) -> Future[dict[str, Any]]:  # fmt: skip
    """Loads a checkpoint in another thread; ``.result()`` waits for it.

    See :func:`tvmgraph.load_checkpoint` for the arguments.

    Args:
        ckpt_file_name: The file.
        net: The Cell that takes the parameters, if any.
        strict_load: Whether dtypes must be the same, too.
        filter_prefix: Prefixes of the parameters that are left out.
        dec_key: Must be ``None``.
        dec_mode: Left aside without a key.
        specify_prefix: Prefixes of the only parameters that are read.
        choice_func: Whether a parameter of a name is read.

    Raises:
        ArgumentError: if there is a ``dec_key``: files are not encrypted.
    """
    if dec_key is not None:
        raise ArgumentError("checkpoints are not encrypted", op="load_checkpoint_async",
                            got=f"dec_mode={dec_mode!r}")  # fmt: skip
    pool = ThreadPoolExecutor(1)
    read = functools.partial(
        load_checkpoint, ckpt_file_name, net, strict_load, filter_prefix,
        specify_prefix=specify_prefix, choice_func=choice_func,
    )  # fmt: skip
    found = pool.submit(read)
    pool.shutdown(wait=False)
    return found


def async_ckpt_thread_status() -> bool:
    """Whether a checkpoint is still being written: never, they are complete when saved."""
    return False


# ---- parameters of other programs: safetensors files with PyTorch's names and layouts ------------

# how PyTorch calls what a layer of a given class holds
_LAST_NAMES = {
    "gamma": "weight", "beta": "bias", "moving_mean": "running_mean",
    "moving_variance": "running_var", "embedding_table": "weight",
}  # fmt: skip


def torch_names(net: Cell) -> dict[str, str]:
    """Returns PyTorch's name of every parameter of a network with the same attribute names.

    Args:
        net: The network.

    Returns:
        PyTorch names by this network's names.

    Example:
        >>> torch_names(nn.SequentialCell(nn.BatchNorm1d(2)))["0.gamma"]
        '0.weight'
    """
    names = {}
    for p in net.get_parameters():
        path, _, last = p.name.rpartition(".")
        last = _LAST_NAMES.get(last, last)
        names[p.name] = f"{path}.{last}" if path else last
    return names


def load_torch(
    net: Cell,
    file: PathLike,
    name_map: Mapping[str, str] | Callable[[str], str] | None = None,
    strict: bool = True,
) -> tuple[list[str], list[str]]:
    """Loads a safetensors file of PyTorch or Hugging Face into a network, all of it or nothing.

    Args:
        net: The network.
        file: The file.
        name_map: The file's name for a name of the network: a dict (names that are missing keep
            their default) or a function. The default is :func:`torch_names`.
        strict: Whether every parameter of the network must be in the file.

    Returns:
        Names of the network without a value, and names of the file that were not used.

    Raises:
        CheckpointError: if the file is damaged, or a parameter is missing and ``strict`` is set.
        ShapeError: if a shape differs; nothing is changed then.

    Note:
        A weight with the same number of elements and axes of length 1 more or less is reshaped:
        1-d convolutions store theirs with four axes.

    Example:
        >>> ms.save_checkpoint({"weight": ops.ones((3, 2)), "bias": ops.ones(3)}, "/tmp/t.ckpt")
        >>> load_torch(nn.Dense(2, 3), "/tmp/t.ckpt")
        ([], [])
    """
    names = torch_names(net)
    if callable(name_map):
        names = {ours: name_map(ours) for ours in names}
    elif name_map is not None:
        names |= name_map
    there = {k: v for k, v in load_checkpoint(file).items() if isinstance(v, Tensor)}
    targets = {p.name: p for p in net.get_parameters()}
    missing = [ours for ours, theirs in names.items() if theirs not in there]
    if missing and strict:
        reject(CheckpointError, "load_torch",
               f"the file has no value for parameter {missing[0]!r}",
               f"looked for {names[missing[0]]!r} among {sorted(there)[:4]}...",
               "give its name in name_map, or pass strict=False")  # fmt: skip
    values = {}
    for ours, theirs in names.items():
        if theirs in there and ours in targets:
            values[ours] = _squeezed(there[theirs], targets[ours].shape)
    load_param_into_net(net, values)
    used = set(names.values())
    return missing, [k for k in there if k not in used]


def _squeezed(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    if [n for n in value.shape if n != 1] == [n for n in shape if n != 1]:
        return F.reshape(value, shape)
    return value
