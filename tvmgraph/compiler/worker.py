"""The compiler in a process of its own: what ends there is an error here, not the end.

LLVM ends its process when it meets something it has no code for, and TVM may take it down by
exhausting a stack or the memory. So this process only asks: a worker that is started on demand,
kept for later and started again when it ended does what takes TVM's compiler, and this process
never loads it. Threads that compile at the same time have a worker each. A worker is told
everything it needs with every call (:mod:`tvmgraph.compiler.worker`), runs nothing but
functions of this package, leaves the terminal's interrupts alone, and ends with the process that
started it.

Compiling stays in this process where :func:`why_here` says so.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import selectors
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tvmgraph.compiler.cache import disk
from tvmgraph.config import Context, context
from tvmgraph.config.flag_registry import REGISTRY, active
from tvmgraph.debug import announce
from tvmgraph.errors import ConfigError

#: Environment variables: 0 compiles in this process; seconds of silence that count as a hang, 0 for
#: none; MiB that the worker may take, 0 for as much as there is.
WORKER_VARIABLE = "TVMGRAPH_COMPILE_WORKER"
TIMEOUT_VARIABLE = "TVMGRAPH_COMPILE_TIMEOUT"
MEMORY_VARIABLE = "TVMGRAPH_COMPILE_MB"
_TIMEOUT = 600
#: A worker that was not asked for so many seconds gives its memory back.
_IDLE = 900
#: Workers at most: one more is started when all are busy and another thread compiles.
_MOST = min(os.cpu_count() or 1, 4)
#: The length before every message.
HEADER = struct.Struct("<Q")
#: The worker's program. TVM would import PyTorch where it is installed, which takes longer than all
#: the rest and serves nothing there.
_MAIN = (
    "import sys; sys.path[:] = sys.argv[2:]; sys.modules['torch'] = None; "
    "from tvmgraph.compiler.serve import serve; serve(*map(int, sys.argv[1].split(',')))"
)
_SAID = 1 << 16  # bytes of what the worker wrote last that are kept
_CHUNK = 1 << 16


class CompilerEnded(Exception):
    """The worker ended, or was ended, in the middle of a call.

    Attributes:
        at: What it was at: phases and kernels that it had begun, in order.
        hung: Whether it had been silent for too long.
        fix: What the user can do about it.
    """

    def __init__(self, how: str, at: tuple[str, ...], fix: str, hung: bool = False) -> None:
        super().__init__(how)
        self.at, self.fix, self.hung = at, fix, hung


class NoWorker(Exception):
    """The worker cannot be started."""


class RemoteError(Exception):
    """Why an error was raised in the worker, with the lines of its code."""


def why_here() -> str | None:
    """Returns why this process compiles itself, or None when the worker does."""
    if not context.compile_worker:
        return "set_context(compile_worker=False)"
    if _number(WORKER_VARIABLE, 1) == 0:
        return f"{WORKER_VARIABLE}=0"
    if disk.linker() is None:
        return "no linker was found, so code cannot leave the process that made it"
    return _state.refused


def call(function: Callable[..., object], *args: object) -> Any:
    """Calls a function in the worker.

    Args:
        function: A function of a module of this package.
        *args: Its arguments, which are pickled, as its result is.

    Raises:
        CompilerEnded: if the worker ended, or said nothing for too long.
        NoWorker: if it cannot be started; :func:`why_here` says so from then on.
        Exception: what the function raised.
    """
    message = pickle.dumps((function, args, surroundings()), protocol=5)
    limit = _number(TIMEOUT_VARIABLE, _TIMEOUT)
    with _state.turns:
        kind, *content = _ask(message, limit)
    if kind == "raised":
        error, why = content
        raise error from (RemoteError(f"\n{why}") if why else None)
    return content[0]


def start() -> None:
    """Starts a worker, unless there is one, without waiting for it."""
    with _state.starting, contextlib.suppress(NoWorker):  # a call will say so
        if not _state.workers:
            _state.idle.append(_started())


def is_ready() -> bool:
    """Whether there is a worker that has started and has nothing to do."""
    return any(worker.ready for worker in _state.idle[-1:])


def stop_unused() -> None:
    """Ends a worker that was started early: what it was for is found on disk."""
    for worker in list(_state.idle):
        if not worker.asked:
            with contextlib.suppress(ValueError):  # another thread was first
                _state.idle.remove(worker)
                _end(worker)


def stop() -> None:
    """Ends all workers, whatever they do; the next call starts another."""
    while _state.idle:
        _end(_state.idle.pop())
    for worker in list(_state.workers):
        worker.kill()


def _ask(message: bytes, limit: float) -> tuple[Any, ...]:
    """Asks a worker that has nothing to do, or a new one."""
    worker = _idle_or_new()
    try:
        answer = worker.ask(message, limit)
    except CompilerEnded as e:
        _end(worker)
        if not worker.ready and _number(MEMORY_VARIABLE, 0):
            raise ConfigError(
                f"the compiler's process cannot start in {MEMORY_VARIABLE}: {e}", op="compile",
                fix=f"set {MEMORY_VARIABLE} to more, at least 1000, or to 0 for no limit",
            ) from e  # fmt: skip
        if not worker.ready:
            raise _refuse(e) from e
        if not worker.retired:
            raise
        return _ask(message, limit)
    except BaseException:  # interrupted: nobody will take the answer
        _end(worker)
        raise
    _state.idle.append(worker)
    return answer


def _idle_or_new() -> Worker:
    with contextlib.suppress(IndexError):
        return _state.idle.pop()
    return _started()


def _started() -> Worker:
    try:
        worker = Worker()
    except OSError as e:
        raise _refuse(e) from e
    _state.workers.add(worker)
    return worker


def _end(worker: Worker) -> None:
    _state.workers.discard(worker)
    worker.kill()
    worker.forget()


def _refuse(cause: Exception) -> NoWorker:
    _state.refused = f"the compiler's process cannot be started: {cause}"
    return NoWorker(_state.refused)


class Worker:
    """A process that runs :func:`tvmgraph.compiler.serve.serve`.

    Raises:
        OSError: if it cannot be started.

    Attributes:
        ready: Whether it was heard of.
        retired: Whether it ended by itself, after nobody had asked for long.
        asked: Whether it was ever asked for something.
    """

    def __init__(self) -> None:
        if not sys.executable:
            raise OSError("Python's own executable is not known")
        limits = f"{_number(MEMORY_VARIABLE, 0)},{_IDLE}"
        command = [sys.executable, "-W", "ignore", "-c", _MAIN, limits, *_search_path()]
        self.process = subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.ready = self.retired = self.asked = False
        self._said = b""
        self._heard = bytearray()
        self._at: list[str] = []

    def ask(self, message: bytes, limit: float) -> tuple[Any, ...]:
        """Sends a message and waits for the answer; shows what the worker shows meanwhile.

        Args:
            message: A pickled call.
            limit: Seconds without a sign of life that count as a hang; 0 waits for ever.

        Raises:
            CompilerEnded: if there is no answer.
        """
        self._at, self._said, self.asked = [], b"", True
        unsent = memoryview(HEADER.pack(len(message)) + message)
        sending, hearing, noise = self._pipes()
        with selectors.DefaultSelector() as selector:
            selector.register(sending, selectors.EVENT_WRITE)
            selector.register(hearing, selectors.EVENT_READ)
            selector.register(noise, selectors.EVENT_READ)
            while True:
                events = selector.select(limit or None)
                if not events:
                    raise self._hung(limit)
                for key, _ in events:
                    if key.fd == sending:
                        unsent = unsent[_write(sending, unsent) :]
                        if not unsent:
                            selector.unregister(sending)
                        continue
                    chunk = os.read(key.fd, _CHUNK)
                    if key.fd == noise:
                        self._said = (self._said + chunk)[-_SAID:]
                    if not chunk:
                        selector.unregister(key.fd)
                    if key.fd != hearing:
                        continue
                    if not chunk:
                        self._answer()  # it may have said why
                        raise self._ended()
                    self._heard += chunk
                    answer = self._answer()
                    if answer is not None:
                        return answer

    def _pipes(self) -> tuple[int, int, int]:
        streams = (self.process.stdin, self.process.stdout, self.process.stderr)
        sending, hearing, noise = (s.fileno() for s in streams if s is not None)
        os.set_blocking(sending, False)
        return sending, hearing, noise

    def _answer(self) -> tuple[Any, ...] | None:
        """Takes what was heard apart, up to the answer."""
        while len(self._heard) >= HEADER.size:
            (length,) = HEADER.unpack_from(self._heard)
            end = HEADER.size + length
            if len(self._heard) < end:
                return None
            kind, *content = message = pickle.loads(memoryview(self._heard)[HEADER.size : end])
            del self._heard[:end]
            self.ready = True
            if kind in ("returned", "raised"):
                return message
            self._note(kind, content)
        return None

    def _note(self, kind: str, content: list[Any]) -> None:
        if kind == "shows" and sys.stderr is not None:
            sys.stderr.write(content[0])
            sys.stderr.flush()
        elif kind == "begins":
            self._at.append(content[0])
            announce.tell(kind, content[0])
        elif kind == "ends" and content[0] in self._at:
            self._at.remove(content[0])
            announce.tell(kind, content[0])
        elif kind == "retires":
            self.retired = True

    def _hung(self, limit: float) -> CompilerEnded:
        return CompilerEnded(
            f"nothing was heard of it for {limit:g} s", tuple(self._at),
            f"set {TIMEOUT_VARIABLE} if it needs more time; else please report it", hung=True,
        )  # fmt: skip

    def _ended(self) -> CompilerEnded:
        """Says how the process ended."""
        self._listen_on()
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            code = 0
        how = f"its process ended with status {code}"
        if code < 0:
            how = f"its process ended by {signal.Signals(-code).name}"
        fix = "write these operators in another way; please report it with this message"
        if code == -signal.SIGKILL:
            fix = f"it needs more memory than there is, or than {MEMORY_VARIABLE} allows"
        said = _line_that_matters(self._said)
        return CompilerEnded(f"{how}: {said}" if said else how, tuple(self._at), fix)

    def _listen_on(self) -> None:
        """Reads what is left of what it said."""
        noise = self._pipes()[2]
        os.set_blocking(noise, False)
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(noise, _CHUNK):
                self._said = (self._said + chunk)[-_SAID:]

    def kill(self) -> None:
        """Ends the process, and what it has started."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def forget(self) -> None:
        """Closes this process's ends of the pipes."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def _write(pipe: int, data: memoryview) -> int:
    try:
        return os.write(pipe, data[:_CHUNK])
    except BlockingIOError:
        return 0
    except BrokenPipeError:  # it has ended, which its silence is about to say
        return len(data)


def _line_that_matters(text: bytes) -> str:
    """LLVM's own message, else the last line."""
    lines = [line.strip() for line in text.decode(errors="replace").splitlines() if line.strip()]
    found = [line for line in lines if line.startswith("LLVM ERROR")]
    return (found or lines[-1:] or [""])[0]


def _search_path() -> list[str]:
    """Where modules are found, this package first and the folder of the user's script last."""
    paths = [os.path.abspath(p) for p in sys.path]
    root = str(Path(__file__).resolve().parents[2])
    return [root, *paths[1:], *paths[:1]]


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "").strip() or str(default)
    if not text.isdigit():
        raise ConfigError(
            f"{variable} cannot be {text!r}", op="compile", fix="set it to a number, such as "
            f"{default}",
        )  # fmt: skip
    return int(text)


class _State:
    """The workers of this process."""

    def __init__(self) -> None:
        self.workers: set[Worker] = set()
        self.idle: list[Worker] = []  # those of them that nobody asks; the last was asked last
        self.turns = threading.BoundedSemaphore(_MOST)
        self.starting = threading.Lock()
        self.refused: str | None = None  # why none can be started


_state = _State()


def _forget_in_child() -> None:
    """A process that was forked has no workers: the pipes belong to its parent."""
    workers, refused = _state.workers, _state.refused
    _state.__init__()
    _state.refused = refused
    for worker in workers:
        worker.forget()
        worker.process.returncode = 0  # not a child of this process


def serve_here() -> None:
    """Says that this process is a worker itself, so that it asks no other."""
    _state.refused = "this is the compiler's process"


os.register_at_fork(after_in_child=_forget_in_child)
atexit.register(stop)


# ---- what decides about a compile beside its arguments, to be the same in another process --------

#: Settings that stand for live objects, or have done their work before a graph is compiled.
_LEFT_OUT = ("jit_config", "device_target", "device_id", "check_numerics")


@dataclass(frozen=True)
class Surroundings:
    """Settings of a process.

    Attributes:
        environment: Its environment variables.
        folder: Its current folder.
        settings: What was given to ``set_context``.
        flags: The debugging flags in force.
        terminal: Whether what it prints is seen on a terminal.
    """

    environment: dict[str, str]
    folder: str
    settings: dict[str, object]
    flags: dict[str, int]
    terminal: bool

    def apply(self) -> None:
        """Makes them those of this process."""
        if self.environment != os.environ:
            os.environ.clear()
            os.environ.update(self.environment)
        with contextlib.suppress(OSError):  # it was deleted
            os.chdir(self.folder)
        for name, value in self.settings.items():
            setattr(context, name, value)
        active.replace(**self.flags)


def surroundings() -> Surroundings:
    """Those of this process."""
    settings = {f.name: getattr(context, f.name) for f in fields(Context)}
    for name in _LEFT_OUT:
        del settings[name]
    flags = {name: getattr(active, name) for name in REGISTRY}
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return Surroundings(dict(os.environ), _current_folder(), settings, flags, terminal)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return os.sep
