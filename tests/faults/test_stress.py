"""The long forms of the faults: ``pytest -m stress`` runs them, a plain run a short one of each.

A round has a seed of its own, so that rounds differ and a failure says which to repeat. What a
test tried and how much of it was wrong is printed (``-s`` shows it) and compared with zero.
"""

from __future__ import annotations

import random
import textwrap
from pathlib import Path

import pytest

import tvmgraph as ms
from tests.faults import helpers
from tests.fuzz.targets import TARGETS
from tvmgraph import nn
from tvmgraph.errors import TvmgraphError

#: Rounds of the plain run and of ``-m stress``.
ROUNDS = [pytest.param(1, id="short"), pytest.param(40, id="long", marks=pytest.mark.stress)]
rounds = pytest.mark.parametrize("rounds", ROUNDS)


def tell(what: str, tried: int, wrong: list[str]) -> None:
    """Prints the count and fails if anything was wrong."""
    print(f"{what}: {tried} tried, {len(wrong)} wrong")
    assert tried and not wrong, wrong[:10]


@rounds
def test_interrupts_at_random_places_from_the_first_call_on(rounds: int) -> None:
    """While it captures, compiles and runs; the next calls compute what eager code does."""
    program = """
    from tests.faults import kinds, points
    from tvmgraph.compiler.compile import clear_cache
    from tvmgraph.core.state import state

    rounds, wrong, tried = int(sys.argv[1]), [], 0
    given = kinds.inputs(3)
    for kind, make in kinds.KINDS.items():
        run, plain = make()
        wanted = [kinds.numbers(plain(x)) for x in given]
        compiling = points.count(lambda: run(given[0]))
        run, _ = make()
        places = points.count(lambda: run(given[0]))  # whose code is there already
        for seed in range(rounds):
            rng = random.Random(seed)
            cold = rng.random() < 0.3
            if cold:
                clear_cache()
            run, _ = make()
            at = rng.randrange(compiling if cold else places)
            hit, where = points.interrupt(lambda: run(given[0]), at)
            tried += hit
            try:
                kinds.check(kind, run, given, wanted)
                assert (state.interpreter, state.tapes, state.scope) == (None, (), ())
            except Exception as e:
                wrong.append(f"{kind} {seed} at {where}: {e}"[:200])
    print(tried, *wrong, sep=chr(10))
    """
    found = helpers.run(program, rounds, timeout=3600, PYTHONPATH=helpers.ROOT)
    count, *wrong = found.splitlines()
    tell("interrupts", int(count), wrong)


@rounds
def test_threads_and_forks_at_once(rounds: int) -> None:
    """Threads train and compute while the process forks; every child computes, too."""
    program = """
    import traceback
    from tests.faults import kinds

    rounds, wrong = int(sys.argv[1]), []
    run, plain = kinds.KINDS["gradient"]()
    given = kinds.inputs(3)
    wanted = [kinds.numbers(plain(x)) for x in given]
    training, stop, steps = kinds.Training(), threading.Event(), [0, 0]
    kinds.check("gradient", run, given, wanted)

    def train(i):
        while not stop.is_set():
            training.step(given[0])
            steps[i] += 1

    threads = [threading.Thread(target=train, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for seed in range(3 * rounds):
        time.sleep(random.Random(seed).uniform(0, 0.02))
        child = os.fork()
        if not child:
            code = 1
            try:
                kinds.check("gradient", run, given, wanted)
                before = int(training.count.asnumpy())
                training.step(given[0])
                code = int(training.count.asnumpy()) - before - 1
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        end = time.monotonic() + 600  # it may compile, on a machine that has much to do
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.01)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            status = "hangs"
        if status:
            wrong.append(f"{seed}: {status}")
    stop.set()
    for thread in threads:
        thread.join()
    if int(training.count.asnumpy()) != sum(steps):
        wrong.append(f"{sum(steps)} steps, {training.count.asnumpy()} kept")
    print(3 * rounds, *wrong, sep=chr(10))
    """
    found = helpers.run(program, rounds, timeout=3600, PYTHONPATH=helpers.ROOT)
    count, *wrong = found.splitlines()
    tell("forks", int(count), wrong)


_KILLED_WRITERS = """
import pathlib, resource

rounds, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
net, x = nn.Dense(64, 4096, weight_init="ones"), Tensor(np.ones((1, 64), np.float32))
expected, wrong = net(x).asnumpy(), []
writers = {
    "net.ckpt": lambda: ms.save_checkpoint(net, str(folder / "net.ckpt")),
    "net.graph": lambda: ms.export(net, x, file_name=folder / "net", file_format="GRAPH"),
    "net.onnx": lambda: ms.export(net, x, file_name=folder / "net", file_format="ONNX"),
}
for write in writers.values():
    write()  # from now on there is a whole file, always
sizes = {name: (folder / name).stat().st_size for name in writers}
ms.load(folder / "net.graph")(x), ms.onnx.load(folder / "net.onnx")(x)

def killed(name, rng, inside):
    "Writes in a child that is killed, when a part of a file is written or at any time."
    limit, delay = int(sizes[name] * rng.random()), rng.uniform(0, 0.05)
    child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            if inside:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            while True:
                writers[name]()
        finally:
            os._exit(1)
    if not inside:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    ended = signal.SIGXFSZ if inside else signal.SIGKILL
    assert os.WTERMSIG(status) == ended, (name, inside, status)

for seed in range(12 * rounds):
    rng = random.Random(seed)
    name = list(writers)[seed % 3]
    killed(name, rng, True)
    try:
        for _ in range(8):  # what is copied into its place is too short for a moment
            assert (folder / name).stat().st_size == sizes[name]
            killed(name, rng, False)
        if name == "net.ckpt":
            found = ms.load_checkpoint(str(folder / name))["weight"].asnumpy()
            assert found.shape == (4096, 64) and (found == 1).all()
        else:
            load = ms.load if name == "net.graph" else ms.onnx.load
            assert np.array_equal(load(folder / name)(x).asnumpy(), expected)
    except Exception as e:
        wrong.append(f"{seed}: {name}: {type(e).__name__}: {e}"[:200])
        writers[name]()
print(12 * rounds, *wrong, sep=chr(10))
"""


@rounds
def test_killed_writers_leave_whole_files(rounds: int, tmp_path: Path) -> None:
    found = helpers.run(_KILLED_WRITERS, rounds, tmp_path, timeout=3600)
    count, *wrong = found.splitlines()
    tell("killed writers", int(count), wrong)


def _flipped(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 2, 4, len(changed) // 50 + 1))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    end = rng.randrange(1, len(changed)) if rng.random() < 0.2 else len(changed)
    return bytes(changed[:end])


#: What may stand in a folder of the cache instead of its entries, two of which are given.
_DAMAGES = """
def flipped(a, b, rng):
    return _flipped(a, rng)

def cut_off(a, b, rng):
    return a[: rng.randrange(len(a))]

def without_code(a, b, rng):
    "Traps where machine code was, as of a page that was never written."
    start = rng.randrange(len(a) // 4, len(a) // 2)
    return a[:start] + bytes([rng.choice((0, 0xCC))]) * 4096 + a[start + 4096 :]

def other_code(a, b, rng):
    "The library of another entry before the description of this one."
    return b[: len(b) - 4096] + a[-4096:]

def swapped(a, b, rng):
    return b

def lengthened(a, b, rng):
    return a + bytes(rng.randrange(1, 100))

def noise(a, b, rng):
    return rng.randbytes(200)

def nothing(a, b, rng):
    return b""

def folder_instead(a, b, rng):
    return None
"""


@rounds
def test_a_hostile_cache_costs_no_result(rounds: int, tmp_path: Path) -> None:
    """Entries of the disk cache that are changed, cut off, swapped, or are something else.

    Every time by a process that has loaded none before: a library that is loaded already would be
    taken for the one in the file. All but the last only load, and compile nothing.
    """
    program = """
    import pathlib, shutil
    from tests.faults.test_stress import _flipped
    from tvmgraph.compiler import compile as compiling

    rounds, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    x = Tensor(np.linspace(0, 1, 12).astype(np.float32))
    programs = (lambda x: ops.exp(x) * 3 - 1), (lambda x: ops.exp(x) * 5 - 2)
    wanted = [f(x).asnumpy() for f in programs]

    class Refused(Exception):
        "Something would be compiled."

    def refuse(*_):
        raise Refused

    def in_a_child(compile_again):
        child = os.fork()
        if child:
            return os.waitpid(child, 0)[1]
        code = 1
        try:
            if not compile_again:
                compiling._build = refuse
            for f, right in zip(programs, wanted):
                try:
                    f = jit(f)
                    assert np.allclose(f(x).asnumpy(), right, atol=1e-5)
                    assert compile_again or f.history[-1].disk == "loaded"
                    code = 0 if compile_again else 2
                except Refused:
                    pass
            code = 0 if code == 1 else code
        except BaseException as e:
            print(type(e).__name__, e, file=sys.stderr)
        finally:
            os._exit(code)

    def restore(*contents):
        for path, content in zip(paths, contents):
            if path.is_dir():
                path.rmdir()
            path.unlink(missing_ok=True)
            if content is None:
                path.mkdir(0o700)
                continue
            path.write_bytes(content)
            path.chmod(0o600)

    assert in_a_child(True) == 0
    paths = sorted(folder.glob("*.so"))
    whole = [p.read_bytes() for p in paths]
    assert len(paths) == 2 and in_a_child(False) >> 8 == 2  # both load
    wrong, tried = [], 0
    for seed in range(3 * rounds):
        for damage in (flipped, flipped, flipped, cut_off, without_code, other_code, swapped,
                       lengthened, noise, nothing, folder_instead):
            rng = random.Random(f"{seed} {damage.__name__}")
            restore(damage(*whole, rng), damage(*whole[::-1], rng))
            status, tried = in_a_child(False), tried + 1
            if status:
                wrong.append(f"{damage.__name__} {seed}: {status}")
    restore(b"", None)
    if in_a_child(True) or not [p for p in paths if p.is_file() and p.stat().st_size]:
        wrong.append("nothing is compiled again")
    print(tried, *wrong, sep=chr(10))
    """
    cache = tmp_path / "cache"
    found = helpers.run(
        _DAMAGES + textwrap.dedent(program), rounds, cache, timeout=3600, PYTHONPATH=helpers.ROOT,
        TVMGRAPH_CACHE_DIR=str(cache), PYTHONWARNINGS="ignore",
    )  # fmt: skip
    count, *wrong = found.splitlines()
    tell("hostile caches", int(count), wrong)


@rounds
def test_a_full_disk_costs_no_result(rounds: int, tmp_path: Path) -> None:
    """No file may grow beyond a random size: code stays in memory, writers say what happened."""
    program = """
    import pathlib, resource

    folder, size = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir()
    net, x = nn.Dense(64, 64), Tensor(np.linspace(-1, 1, 64).astype(np.float32)[None])
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    f = jit(lambda x: ops.softmax(ops.exp(x) * 3 - 1) + net(x))
    np.testing.assert_allclose(f(x).asnumpy(), (ops.softmax(ops.exp(x) * 3 - 1) + net(x)).asnumpy(),
                               atol=1e-5)
    for write in (lambda: ms.save_checkpoint(net, str(folder / "net.ckpt")),
                  lambda: ms.export(net, x, file_name=folder / "net", file_format="ONNX")):
        try:
            write()
        except OSError:
            continue
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for path in folder.iterdir():
        ms.load_checkpoint(str(path)) if path.suffix == ".ckpt" else ms.onnx.load(path)(x)
    """
    wrong: list[str] = []
    for seed in range(rounds):
        size = int(2 ** random.Random(seed).uniform(10, 17))
        try:
            helpers.run(
                program, tmp_path / str(seed), size, timeout=300, TVMGRAPH_CACHE_DIR=str(tmp_path)
            )
        except AssertionError as e:
            wrong.append(f"{size} bytes: {e}")
    tell("full disks", rounds, wrong)


@rounds
@pytest.mark.parametrize("kind", ["module", "graph-file", "tensors", "onnx"])
def test_mutated_files_end_in_errors_of_the_project(rounds: int, kind: str) -> None:
    function, seeds = TARGETS[kind]
    wrong: list[str] = []
    contents, tried = seeds(), 25 * rounds
    for seed in range(tried):
        rng = random.Random(seed)
        try:
            function(_flipped(rng.choice(contents), rng))
        except Exception as e:
            wrong.append(f"{seed}: {type(e).__name__}: {e}")
    tell(f"mutated {kind}", tried, wrong)


@rounds
def test_mutated_checkpoints_do_not_load(rounds: int, tmp_path: Path) -> None:
    """Their digest covers all bytes: a changed one is an error."""
    path, wrong = tmp_path / "net.ckpt", list[str]()
    ms.save_checkpoint(nn.Dense(8, 8), str(path))
    content = path.read_bytes()
    for seed in range(25 * rounds):
        path.write_bytes(_flipped(content, random.Random(seed)))
        if path.read_bytes() == content:
            continue
        try:
            ms.load_checkpoint(str(path))
            wrong.append(f"{seed}: loaded")
        except (TvmgraphError, ValueError):
            continue
    tell("mutated checkpoints", 25 * rounds, wrong)
