"""Checkpoints from one format to another, loading aside, and parameters of other programs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from re import compile as pattern
from typing import Any

from tvmgraph.core.arguments import PathLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, reject
from tvmgraph.nn.cell import Cell
from tvmgraph.train import serialization
from tvmgraph.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint


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
        reject(serialization.CheckpointError, "load_torch",
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


__all__ = [
    "async_ckpt_thread_status", "ckpt_to_safetensors", "load_checkpoint_async", "load_torch",
    "safetensors_to_ckpt", "torch_names",
]  # fmt: skip
