"""Parameters of other programs: safetensors files with PyTorch's names and layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tvmgraph.core.arguments import PathLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.nn.cell import Cell
from tvmgraph.train.serialization import CheckpointError, load_checkpoint, load_param_into_net

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
        raise CheckpointError(
            f"the file has no value for parameter {missing[0]!r}", op="load_torch",
            got=f"looked for {names[missing[0]]!r} among {sorted(there)[:4]}...",
            fix="give its name in name_map, or pass strict=False",
        )  # fmt: skip
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


__all__ = ["load_torch", "torch_names"]
