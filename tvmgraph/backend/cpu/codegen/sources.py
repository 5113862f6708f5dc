"""The code that was generated: LLVM and assembly of an executable's kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvmgraph.debug import Phases
from tvmgraph.runtime.device_image import modules_in

if TYPE_CHECKING:
    from tvm import relax


def show_code(executable: relax.VMExecutable, phases: Phases) -> None:
    """Hands the generated code to whoever watches the compile.

    Args:
        executable: TVM's executable.
        phases: Takes the texts, where somebody asked for them.
    """
    phases.text(3, "VM program", "txt", executable.as_text)
    phases.text(3, "LLVM", "ll", lambda: code_of(executable, "ll"))
    phases.text(3, "assembly", "s", lambda: code_of(executable, "asm"))


def code_of(executable: relax.VMExecutable, form: str) -> str:
    """Returns generated code.

    Args:
        executable: What ``relax.build`` returned.
        form: ``"ll"`` or ``"asm"``.
    """
    return "\n".join(m.inspect_source(form) for m in modules_in(executable.mod) if m.kind == "llvm")
