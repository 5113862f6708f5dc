"""The table of impure functions of libraries: what becomes of a call in code that is compiled."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Impure:
    """What becomes of a call.

    Attributes:
        treatment: ``"guard"`` or ``"native"``.
        fix: What to do instead of a native call.
        pure_from: Number of arguments from which on the result depends on nothing else.
    """

    treatment: Literal["guard", "native"]
    fix: str = ""
    pure_from: int = sys.maxsize


DRAW = Impure(
    "native", "draw with ops (ops.rand, ops.randn, ops.randint), or outside and pass the numbers"
)
UNIQUE = Impure("native", "make it before the call and pass it as an argument")
CLOCK = Impure("native", "read the clock outside: around the call, or before it as an argument")
FILE = Impure("native", "read the file before the call and pass its contents")
SYSTEM = Impure("native", "do it outside, and pass what it gives as an argument")
INPUT = Impure("native", "read the value before the call and pass it as an argument")
ITERATOR = Impure("native", "take the items before the call and pass them, or use a list")
FRAME = Impure("native", "pass what is needed as an argument")
SETTING = Impure("native", "set it outside of the compiled function")
STATE = Impure("guard")
ASKED = Impure("native", "ask it before the call and pass what it says")
STREAM = Impure("native", "set or read the state of the random stream outside")


def _clock(pure_from: int) -> Impure:
    return Impure("native", CLOCK.fix, pure_from)


#: Functions by module; ``None`` means all that are not listed in :data:`ONLY_COMPUTE`.
TABLE: dict[str, dict[Impure, tuple[str, ...] | None]] = {
    "builtins": {FILE: ("open",), INPUT: ("input",)},
    "random": {DRAW: None},
    "secrets": {UNIQUE: None},
    "uuid": {UNIQUE: ("getnode", "uuid1", "uuid4", "uuid6", "uuid7")},
    "numpy.random": {DRAW: None},
    "time": {
        CLOCK: None, _clock(1): ("asctime", "ctime", "gmtime", "localtime"),
        _clock(2): ("strftime",),
    },
    "os": {
        SYSTEM: None, UNIQUE: ("urandom", "getrandom"),
        STATE: ("getcwd", "getcwdb", "getenv", "getenvb", "getpid", "getppid"),
    },
    "sys": {
        FRAME: ("_current_frames", "_getframe", "exc_info", "exception"),
        SYSTEM: ("exit", "getrefcount", "set_int_max_str_digits", "setprofile",
                  "setrecursionlimit", "setswitchinterval", "settrace"),
        STATE: ("get_int_max_str_digits", "getrecursionlimit", "getswitchinterval"),
    },
    "inspect": {FRAME: ("currentframe", "stack", "trace")},
    "traceback": {
        FRAME: ("extract_stack", "format_exc", "format_stack", "print_exc", "print_stack"),
    },
    "gc": {SYSTEM: None},
    "weakref": {SYSTEM: None},
    "logging": {
        SYSTEM: ("addLevelName", "basicConfig", "captureWarnings", "disable",
                  "setLogRecordFactory", "setLoggerClass", "shutdown"),
    },
    "os.path": {
        STATE: (
            "abspath", "exists", "expanduser", "expandvars", "getatime", "getctime", "getmtime",
            "getsize", "isdir", "isfile", "islink", "ismount", "lexists", "realpath", "relpath",
            "samefile",
        ),
    },
    "threading": {
        STATE: ("active_count", "current_thread", "enumerate", "get_ident", "get_native_id"),
        SYSTEM: ("Thread", "Timer"),
    },
    "_thread": {SYSTEM: ("start_new_thread",)},
    "asyncio": {SYSTEM: ("run",)},
    "multiprocessing": {SYSTEM: ("Pool", "Process")},
    "io": {FILE: ("FileIO", "open_code")},
    "numpy": {
        FILE: (
            "fromfile", "genfromtxt", "load", "loadtxt", "memmap", "save", "savetxt", "savez",
            "savez_compressed",
        ),
        SETTING: ("set_printoptions", "setbufsize", "seterr", "seterrcall"),
        STATE: ("get_printoptions", "getbufsize", "geterr", "geterrcall"),
    },
    "pickle": {FILE: ("dump", "load")},
    "json": {FILE: ("dump", "load")},
    "glob": {SYSTEM: ("glob", "iglob")},
    "shutil": {SYSTEM: None},
    "socket": {SYSTEM: None},
    "subprocess": {SYSTEM: None},
    "tempfile": {SYSTEM: None},
    "urllib.request": {SYSTEM: ("urlopen", "urlretrieve")},
    "warnings": {
        SYSTEM: ("catch_warnings", "filterwarnings", "resetwarnings", "simplefilter", "warn",
                  "warn_explicit"),
    },
    "signal": {SETTING: ("alarm", "setitimer", "signal"), STATE: ("getsignal",)},
    "locale": {SETTING: ("setlocale",)},
    "decimal": {SETTING: ("getcontext", "localcontext", "setcontext")},
    "atexit": {SETTING: ("register", "unregister")},
    "faulthandler": {SETTING: None},
    "getpass": {INPUT: ("getpass",), SYSTEM: ("getuser",)},
    "tvmgraph.common.seed": {STREAM: ("set_seed",), STATE: ("get_seed",)},
    "tvmgraph._front": {SETTING: ("set_deterministic", "set_device", "set_recursion_limit")},
    "tvmgraph.config.settings": {SETTING: ("set_context",), STATE: ("get_context",)},
    "tvmgraph.distributed.context": {
        STATE: ("get_algo_parameters", "get_auto_parallel_context"),
        SETTING: ("reset_auto_parallel_context", "set_algo_parameters",
                   "set_auto_parallel_context"),
    },
    "tvmgraph.core.random": {STREAM: ("get_rng_state", "manual_seed", "seed", "set_rng_state")},
    "tvmgraph.train.serialization": {FILE: ("load_checkpoint", "save_checkpoint")},
}  # fmt: skip
#: What only computes, or is the same in a process for good.
ONLY_COMPUTE: dict[str, frozenset[str]] = {
    "random": frozenset({"Random"}),
    "secrets": frozenset({"compare_digest"}),
    "numpy.random": frozenset(
        {"BitGenerator", "Generator", "MT19937", "PCG64", "PCG64DXSM", "Philox", "RandomState",
         "SFC64", "SeedSequence", "default_rng", "test"}
    ),
    "time": frozenset({"get_clock_info", "mktime", "struct_time", "strptime"}),
    "os": frozenset(
        {"confstr", "cpu_count", "fsdecode", "fsencode", "fspath", "get_exec_path", "major",
         "makedev", "minor", "strerror", "sysconf", "uname"}
    ),
    "socket": frozenset({"htonl", "htons", "inet_aton", "inet_ntoa", "inet_ntop", "inet_pton",
                         "ntohl", "ntohs"}),
    "subprocess": frozenset({"list2cmdline", "CalledProcessError", "TimeoutExpired"}),
}  # fmt: skip
