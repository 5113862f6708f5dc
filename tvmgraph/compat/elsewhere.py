"""What PyTorch's words are called here, for the errors of names that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from tvmgraph.errors import NotFoundError, user_source

_GRADIENTS = "ms.value_and_grad(fn, None, net.trainable_params()) returns the gradients"

#: Class or module -> a name that it lacks -> what to do.
INSTEAD: Mapping[str, Mapping[str, str]] = {
    "Cell": {
        "parameters": "call trainable_params(), or get_parameters() for all of them",
        "named_parameters": "call parameters_and_names()",
        "children": "call cells()",
        "named_children": "call name_cells()",
        "modules": "call cells_and_names(), which gives pairs of a name and a Cell",
        "named_modules": "call cells_and_names()",
        "get_submodule": "index name_cells(), or look in cells_and_names()",
        "add_module": "call insert_child_to_cell(name, cell)",
        "register_module": "call insert_child_to_cell(name, cell)",
        "register_parameter": "call insert_param_to_cell(name, parameter)",
        "get_parameter": "call parameters_dict()[name]",
        "eval": "call set_train(False)",
        "train": "call set_train()",
        "forward": "call the Cell itself; the method of its computation is `construct`",
        "zero_grad": f"leave it out: {_GRADIENTS}, and nothing accumulates",
        "requires_grad_": "set requires_grad of its parameters, or call set_grad",
        "half": "call to_float(ms.float16)",
        "bfloat16": "call to_float(ms.bfloat16)",
        "cuda": "call set_context(device_target='GPU') before",
        "cpu": "call set_context(device_target='CPU') before",
    },
    "Optimizer": {
        "step": "call the optimizer with the gradients: optimizer(gradients)",
        "param_groups": "pass groups as the parameters; get_lr_parameter(p) gives a rate, and "
                        "experimental.optim has optimizers of param_groups",
    },
    "Tensor": {
        "backward": f"differentiate a function: {_GRADIENTS}",
        "grad": f"gradients are not kept on tensors: {_GRADIENTS}",
        "grad_fn": f"tensors do not know how they came about: {_GRADIENTS}",
        "requires_grad": "say what to differentiate by: ms.grad(fn, position), or a Parameter",
        "retain_grad": "register_hook sees the gradient of a tensor",
        "is_leaf": "Parameters are the leaves",
        "detach_": "call detach(), or ops.stop_gradient",
        "new_tensor": "call ms.tensor(data, dtype=t.dtype)",
        "element_size": "read itemsize",
        "is_cuda": "read device",
    },
    "tvmgraph": {
        "no_grad": "leave it out: only what ms.grad asks for is differentiated; "
                   "ops.stop_gradient cuts a part off",
        "inference_mode": "leave it out: only what ms.grad asks for is differentiated",
        "enable_grad": "leave it out: ms.grad differentiates what it is given",
        "autograd": f"{_GRADIENTS}; ms.custom_vjp takes a derivative of your own",
        "save": "use save_checkpoint(net, 'net.ckpt')",
        "compile": "use ms.jit",
        "cuda": "use set_context(device_target='GPU')",
        "device": "use set_context(device_target='CPU' or 'GPU')",
    },
    "tvmgraph.nn": {
        "Module": "derive from nn.Cell, and name the method of its computation `construct`",
        "ModuleList": "use nn.CellList",
        "ModuleDict": "use nn.CellDict",
        "Sequential": "use nn.SequentialCell",
        "ParameterList": "use ms.ParameterTuple",
        "Parameter": "use ms.Parameter",
        "functional": "use ops, or mint.nn.functional, which has PyTorch's arguments",
        "init": "use common.initializer",
    },
}  # fmt: skip


_ELSEWHERE = frozenset(name for names in INSTEAD.values() for name in names)


def _instead(kind: type, missing: str) -> str | None:
    """What to use for a name that PyTorch has on objects of a class or one it derives from."""
    found = (INSTEAD[c.__name__].get(missing) for c in kind.__mro__ if c.__name__ in INSTEAD)
    return next(filter(None, found), None)


class NoAttributeError(NotFoundError):
    """An object has no such attribute; the nearest name is looked up when somebody reads it.

    Programs ask objects for what they may not have (``hasattr``), so making the error is cheap.
    """

    def __init__(self, owner: object, missing: str) -> None:
        kind = type(owner).__name__
        fix = _instead(type(owner), missing) if missing in _ELSEWHERE else None
        # Python and its libraries ask for names like `__array__`, users do not
        at = "" if missing.startswith("__") else user_source()
        super().__init__(f"{kind} has no attribute {missing!r}", at=at, fix=fix)
        self._asked: tuple[object, str] | None = None if fix else (owner, missing)

    def __str__(self) -> str:
        asked, self._asked = self._asked, None
        if asked is not None:
            self.fix = did_you_mean(asked[1], dir(asked[0]))
        return super().__str__()

    def __reduce__(self) -> tuple[object, ...]:
        str(self)
        state = {"op": self.op, "got": self.got, "at": self.at, "fix": self.fix}
        return (NotFoundError, (self.message,), state)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Returns the question with the public name that is nearest, or None.

    Args:
        name: The name that does not exist.
        known: Those that do.
    """
    near = nearest(name, known)
    return f"did you mean {near}?" if near else None


def nearest(name: str, known: Iterable[str], closeness: float = 0.75) -> str | None:
    """Returns the public name that is most like another, or None.

    Args:
        name: The name that does not exist.
        known: Those that do.
        closeness: How like it must be, up to 1.
    """
    names = {n.lower(): n for n in known if not n.startswith("_")}
    near = difflib.get_close_matches(name.lower(), names, 1, closeness)
    return names[near[0]] if near else None
