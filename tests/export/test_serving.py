"""A compiled module over HTTP: results, batches, mistakes of clients, starting and stopping."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, nn, ops
from tvmgraph.runtime import Module, load
from tvmgraph.runtime.batches import Batcher, Overloaded, why_single

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("starlette", reason="starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from tvmgraph.runtime.serving import make_app  # noqa: E402

RECIPE = Path(__file__).parents[2] / "docs" / "examples" / "container" / "Containerfile"


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(4, 3, weight_init="normal", bias_init="ones")

    def construct(self, x: Tensor, scale: Tensor) -> Any:
        y = self.dense(x) * scale
        return y, ops.argmax(y, -1)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    args = (Tensor(np.ones((2, 4), np.float32)), Tensor(np.ones((2, 1), np.float32)))
    axes = {"x": {0: "batch"}, "scale": {0: "batch"}}
    path = tmp_path_factory.mktemp("serving") / "net"
    return ms.export(Net(), *args, file_name=path, file_format="TVM", dynamic=axes)


@pytest.fixture(scope="module")
def module(file: Path) -> Module:
    return load(file)


def tensor(name: str, array: np.ndarray, kind: str = "FP32") -> dict[str, Any]:
    return {"name": name, "shape": list(array.shape), "datatype": kind, "data": array.tolist()}


def request(rows: int, seed: int = 0) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    arrays = {"x": rng.normal(size=(rows, 4)), "scale": rng.normal(size=(rows, 1))}
    arrays = {name: a.astype(np.float32) for name, a in arrays.items()}
    return {"inputs": [tensor(n, a) for n, a in arrays.items()]}, arrays


def outputs_of(answer: Any) -> dict[str, np.ndarray]:
    assert answer.status_code == 200, answer.text
    outputs = answer.json()["outputs"]
    return {o["name"]: np.reshape(o["data"], o["shape"]) for o in outputs}


def with_client(app: Any, body: Callable[[Any], Any]) -> Any:
    """Runs ``body(client)`` beside the application, between its start and its end."""

    async def run() -> Any:
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await body(client)

    return asyncio.run(run())


# ---- results and batches ------------------------------------------------------------------------


def test_concurrent_clients_get_their_own_results(module: Module) -> None:
    """Requests of several sizes share calls, and every answer is that of its rows."""
    sent = [request(1 + seed % 3, seed) for seed in range(40)]

    async def body(client: Any) -> Any:
        post = [client.post("/v2/models/Net/infer", json=r) for r, _ in sent]
        return await asyncio.gather(*post), (await client.get("/v2/models/Net/stats")).json()

    app = make_app(module, max_rows=16, max_wait=0.05)
    answers, stats = with_client(app, body)
    for answer, (_, arrays) in zip(answers, sent):
        found = outputs_of(answer)
        y, best = module(**arrays)
        np.testing.assert_allclose(found["output0"], y, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found["output1"], best)
    assert stats["requests"] == 40
    assert stats["rows"] == sum(len(arrays["x"]) for _, arrays in sent)
    assert stats["calls"] <= 10  # 79 rows in calls of at most 16
    assert 8 <= stats["largest"] <= 16
    assert stats["waiting"] == 0


def test_a_single_request_does_not_wait_for_long(module: Module) -> None:
    async def body(client: Any) -> float:
        await client.post("/v2/models/Net/infer", json=request(1)[0])
        start = time.perf_counter()
        await client.post("/v2/models/Net/infer", json=request(1)[0])
        return time.perf_counter() - start

    assert with_client(make_app(module, max_wait=0.0), body) < 0.5


def test_tensors_as_bytes(module: Module) -> None:
    """The binary extension, in both directions."""
    _, arrays = request(3)
    head = {
        "id": "7",
        "parameters": {"binary_data_output": True},
        "inputs": [
            {"name": n, "shape": list(a.shape), "datatype": "FP32",
             "parameters": {"binary_data_size": a.nbytes}}
            for n, a in arrays.items()
        ],
    }  # fmt: skip
    text = json.dumps(head).encode()
    content = text + b"".join(a.tobytes() for a in arrays.values())
    headers = {"Inference-Header-Content-Length": str(len(text))}

    async def body(client: Any) -> Any:
        return await client.post("/v2/models/Net/infer", content=content, headers=headers)

    answer = with_client(make_app(module), body)
    assert answer.status_code == 200, answer.text
    length = int(answer.headers["Inference-Header-Content-Length"])
    told = json.loads(answer.content[:length])
    assert told["id"] == "7"
    size = told["outputs"][0]["parameters"]["binary_data_size"]
    y = np.frombuffer(answer.content[length : length + size], np.float32).reshape(3, 3)
    np.testing.assert_allclose(y, module(**arrays)[0], rtol=1e-6)


def test_modules_that_cannot_share_calls(tmp_path: Path) -> None:
    """A fixed size, or a state: every request is a call of its own, and that is said."""

    class Counter(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count = Parameter(Tensor(0.0), name="count")

        def construct(self, x: Tensor) -> Tensor:
            self.count += 1.0
            return x + self.count

    x = Tensor(np.zeros((2, 3), np.float32))
    options: dict[str, Any] = {"file_format": "TVM"}
    fixed = load(ms.export(nn.ReLU(), x, file_name=tmp_path / "fixed", **options))
    counting = load(ms.export(Counter(), x, file_name=tmp_path / "counting",
                              dynamic={"x": {0: "n"}}, **options))  # fmt: skip
    assert "not one size that varies" in str(why_single(fixed))
    assert "change parameters" in str(why_single(counting))
    sent = {"inputs": [tensor("x", x.asnumpy())]}

    async def body(client: Any) -> Any:
        post = [client.post("/v2/models/Counter/infer", json=sent) for _ in range(5)]
        facts = await client.get("/v2/models/Counter")
        stats = await client.get("/v2/models/Counter/stats")
        return await asyncio.gather(*post), facts.json(), stats.json()

    answers, facts, _ = with_client(make_app(counting), body)
    assert facts["parameters"]["batching"]["because"] == "its calls change parameters"
    seen = sorted(float(outputs_of(a)["output0"][0, 0]) for a in answers)
    assert seen == [1.0, 2.0, 3.0, 4.0, 5.0]


# ---- what clients do wrong ----------------------------------------------------------------------

GOOD = request(1)[0]
X, SCALE = GOOD["inputs"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "the body is no JSON"),
        (b"[]", 'an object with a list "inputs"'),
        ({"inputs": [X]}, "input 'scale' (FP32[batch,1]) is missing"),
        ({"inputs": [X, X, SCALE]}, "input 'x' is given twice"),
        ({"inputs": [X, {**SCALE, "name": "z"}]}, "no input 'z'; the inputs are x, scale"),
        ({"inputs": [X, {"data": []}]}, 'a text "name"'),
        ({"inputs": [{**X, "datatype": "INT8"}, SCALE]},
         "input 'x' must have the datatype FP32, not 'INT8'"),
        ({"inputs": [{**X, "shape": [1, 5]}, SCALE]},
         "input 'x' must have the shape of FP32[batch,4], not [1, 5]"),
        ({"inputs": [{**X, "shape": "1x4"}, SCALE]}, "input 'x' must have the shape"),
        ({"inputs": [{**X, "shape": [0, 4], "data": []}, SCALE]}, "input 'x' must have the shape"),
        ({"inputs": [X, {**SCALE, "shape": [2, 1], "data": [1, 2]}]},
         "input 'scale' must have the shape of FP32[batch,1] with batch=1, not [2, 1]"),
        ({"inputs": [{**X, "data": [1, 2, 3]}, SCALE]},
         "input 'x' has 3 elements, its shape says 4"),
        ({"inputs": [{**X, "data": [[1, 2], [3]]}, SCALE]}, "input 'x' has rows of several"),
        ({"inputs": [{**X, "data": ["a", 2, 3, 4]}, SCALE]},
         "input 'x' has elements that are no float32"),
        ({"inputs": [{**X, "data": [1e300, 2, 3, 4]}, SCALE]},
         "input 'x' has elements outside of float32"),
        ({"inputs": [{**X, "data": None}, SCALE]}, "input 'x' needs a list \"data\""),
        ({"inputs": [{**X, "parameters": {"binary_data_size": 16}}, SCALE]},
         "input 'x' needs 16 bytes"),
        ({"inputs": [X, SCALE], "outputs": [{"name": "w"}]}, "there is no output"),
        ({"inputs": [X, SCALE], "outputs": "w"}, '"outputs" must be a list'),
        ({"inputs": [X, {**SCALE, "parameters": [1]}]}, '"parameters" must be an object'),
        ({"inputs": [{**X, "name": ["x"]}, SCALE]}, 'a text "name"'),
        ({"inputs": [{**X, "data": [[[1]], 2, {}, None]}, SCALE]}, "input 'x' has"),
        ({"inputs": [{**X, "data": [10**400, 2, 3, 4]}, SCALE]}, "input 'x' has elements that"),
    ],
)  # fmt: skip
def test_bad_requests_name_the_input(module: Module, content: Any, message: str) -> None:
    sent = content if isinstance(content, bytes) else json.dumps(content).encode()

    async def body(client: Any) -> Any:
        bad = client.post("/v2/models/Net/infer", content=sent)
        good = client.post("/v2/models/Net/infer", json=GOOD)
        return await asyncio.gather(bad, good)

    bad, good = with_client(make_app(module), body)
    assert bad.status_code == 400
    assert message in bad.json()["error"]
    assert good.status_code == 200  # others in the same moment are served


def test_other_refusals(module: Module) -> None:
    async def body(client: Any) -> None:
        assert (await client.get("/v2/health/live")).json() == {"live": True}
        assert (await client.get("/v2/health/ready")).status_code == 200
        assert (await client.get("/v2/models/Net/ready")).status_code == 200
        facts = (await client.get("/v2/models/Net")).json()
        assert facts["inputs"][0] == {"name": "x", "datatype": "FP32", "shape": [-1, 4]}
        unknown = await client.post("/v2/models/Other/infer", json=GOOD)
        assert (unknown.status_code, "'Net'" in unknown.json()["error"]) == (404, True)
        assert (await client.get("/v2/models/Net/infer")).status_code == 405
        large = await client.post("/v2/models/Net/infer", json=request(100)[0])
        assert large.status_code == 413

    with_client(make_app(module, max_body=2000), body)


def test_too_many_wait(module: Module) -> None:
    async def run() -> int:
        batcher = Batcher(module, max_rows=1, max_queue=2)
        await batcher.start()
        arrays = request(1)[1]
        tasks = [asyncio.create_task(batcher.infer(arrays)) for _ in range(20)]
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await batcher.stop()
        assert batcher.counts.requests == sum(not isinstance(f, Overloaded) for f in found)
        return sum(isinstance(f, Overloaded) for f in found)

    assert asyncio.run(run()) > 0


def test_a_failing_call_ends_only_its_requests(module: Module) -> None:
    async def run() -> None:
        batcher = Batcher(module)
        await batcher.start()
        wrong = {**request(1)[1], "x": np.ones((1, 4), np.float64)}
        with pytest.raises(ms.errors.DTypeError, match="input 'x'"):
            await batcher.infer(wrong)
        assert len(await batcher.infer(request(2)[1])) == 2
        await batcher.stop()

    asyncio.run(run())


# ---- as a process -------------------------------------------------------------------------------


@pytest.fixture
def bundle(tmp_path: Path) -> Iterator[Path]:
    from tvmgraph.export.bundle import write_bundle

    write_bundle(tmp_path / "bundle")
    yield tmp_path / "bundle"


def test_the_container_lints() -> None:
    hadolint = shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    found = subprocess.run([hadolint, str(RECIPE)], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def instruction(name: str) -> str:
    """The last instruction of a kind in the recipe, without its name."""
    lines = RECIPE.read_text().replace("\\\n", "").splitlines()
    return [line for line in lines if line.startswith(f"{name} ")][-1].removeprefix(f"{name} ")


def test_the_container_serves(file: Path, bundle: Path, tmp_path: Path) -> None:
    """The commands of the recipe: the runtime alone answers, the health check sees it, SIGTERM
    ends it when the answers are out."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert instruction("COPY").split()[-1] == "/models/net.tvm"
    places = {"/models/net.tvm": str(file), "0.0.0.0": "127.0.0.1", "python": sys.executable,
              "8000": str(port)}  # fmt: skip
    command = [places.get(word, word) for word in json.loads(instruction("CMD"))]
    given = dict(word.split("=") for word in instruction("ENV").split())
    assert given.pop("PYTHONPATH") == instruction("COPY --from=build").split()[-1] == "/app"
    env = {**os.environ, **given, "PYTHONPATH": str(bundle)}
    with subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as p:
        try:
            assert p.stdout is not None
            url = p.stdout.readline().strip()
            assert url == f"http://127.0.0.1:{port}/v2/models/{file.stem}"
            check = json.loads(instruction("HEALTHCHECK").partition("CMD ")[2])
            check = [sys.executable, "-c", check[2].replace("8000", str(port))]
            for _ in range(40):
                seen = subprocess.run(check, env=env, capture_output=True).returncode
                if seen == 0:
                    break
            assert seen == 0
            sent, arrays = request(2)
            found = outputs_of(httpx.post(f"{url}/infer", json=sent))
            np.testing.assert_allclose(found["output0"], load(file)(**arrays)[0], rtol=1e-5)
        finally:
            p.send_signal(signal.SIGTERM)
        assert p.wait(20) in (0, -signal.SIGTERM)
    gone = subprocess.run(check, env=env, capture_output=True)
    assert gone.returncode != 0


def test_what_cannot_be_served(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from tvmgraph.cli import app

    found = CliRunner().invoke(app, ["serve", str(tmp_path / "absent.tvm")])
    assert (found.exit_code, "no such file" in found.output) == (2, True)


def test_the_address_is_known_before_it_is_said(file: Path) -> None:
    """A port of 0 becomes a free one; a port in use ends the command with status 2, no URL."""
    from typer.testing import CliRunner

    from tvmgraph.cli import app
    from tvmgraph.runtime.serving import listen

    taken, url = listen("127.0.0.1", 0, "mödel n")
    with taken:
        port = taken.getsockname()[1]
        assert url == f"http://127.0.0.1:{port}/v2/models/m%C3%B6del%20n"
        found = CliRunner().invoke(app, ["serve", str(file), "--port", str(port)])
    assert found.exit_code == 2
    assert found.stdout == ""
    assert "in use" in found.stderr
