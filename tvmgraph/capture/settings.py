"""How a function is captured: what :func:`tvmgraph.jit` lets its user choose."""

from __future__ import annotations

from dataclasses import dataclass

from tvmgraph.config import context


class CapturedAgain(BaseException):
    """A function is captured again, as something was found out about it.

    Args:
        settings: How.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings


@dataclass(frozen=True)
class Settings:
    """Choices of one jitted function.

    Attributes:
        mode: ``"ast"`` interprets user code, ``"region"`` as well but runs with graph breaks what
            cannot be one graph, ``"trace"`` runs it once.
        attr_guard: Whether what the code read besides its arguments is compared at every call.
        global_writes: ``"warn"`` keeps a write to a global inside the call and warns once,
            ``"error"`` refuses it, ``"replay"`` repeats it after every call; empty follows
            ``set_context(global_writes=...)``, and then ``lax``.
        prints: Whether ``print`` is a node of the graph; found out while capturing.
        dynamic: Whether the sizes of all axes vary from the first call on.
        fullgraph: Whether nothing may run as plain Python between compiled segments.
        lax: Whether what cannot be one graph runs with graph breaks, exactly as in plain Python.
        identity: Whether code that is not captured may ask which results are one tensor.
        decide: Who may need the elements of a small tensor of integers that is passed, so that
            they count as a constant: ``"operators"`` for their settings, ``"all"`` code, or nobody.
        settles: Whether those also decide tests, as that of a recursion; found out while capturing.
        alias: Name under which the function was made, for messages.
    """

    mode: str = "ast"
    attr_guard: bool = True
    global_writes: str = ""
    dynamic: bool = False
    prints: bool = False
    fullgraph: bool = False
    lax: bool = False
    identity: bool = False
    decide: str = ""
    settles: bool = False
    alias: str = "jit"

    @property
    def on_global_write(self) -> str:
        """What a write to a global does."""
        return self.global_writes or context.global_writes or ("replay" if self.lax else "warn")
