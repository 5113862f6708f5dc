"""A compiled module over HTTP: the Open Inference Protocol (V2), with dynamic batching.

    python -m tvmgraph.runtime.serving net.tvm --port 8000      # or tvmgraph serve net.tvm

Needs Starlette and uvicorn (``pip install 'tvmgraph[serve]'``) beside the small runtime, neither
the front end nor a compiler.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import ml_dtypes
import numpy as np

from tvmgraph.errors import NotFoundError, TvmgraphError
from tvmgraph.runtime.archive import Entry
from tvmgraph.runtime.batches import Batcher, Overloaded
from tvmgraph.runtime.module import Module, load

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

#: The protocol's names of dtypes.
DATATYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
    "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16",
    "float32": "FP32", "float64": "FP64", "bfloat16": "BF16",
}  # fmt: skip
_LENGTH = "inference-header-content-length"  # of the JSON before tensors that are sent as bytes


class BadRequest(Exception):
    """What a client sent cannot be served.

    Args:
        message: What is wrong, naming the input.
        status: The HTTP status.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


# ---- requests and answers -----------------------------------------------------------------------


def read_request(body: bytes, length: str | None, module: Module) -> tuple[dict[str, Any], Any]:
    """Reads a request of the protocol.

    Args:
        body: JSON, and behind it the bytes of tensors where ``length`` says where they begin.
        length: The header ``Inference-Header-Content-Length``, None if there is none.
        module: Which inputs there are.

    Returns:
        The arrays by name, and the request without them.

    Raises:
        BadRequest: if it cannot be read, or an input is missing, unknown, or of a wrong type.
    """
    if length is not None and not (length.isdecimal() and int(length) <= len(body)):
        raise BadRequest(f"the header {_LENGTH} must be a length within the body, not {length!r}")
    split = len(body) if length is None else int(length)
    try:
        request = json.loads(body[:split])
    except ValueError as e:
        raise BadRequest(f"the body is no JSON: {e}") from None
    given = request.get("inputs") if isinstance(request, dict) else None
    if not isinstance(given, list):
        raise BadRequest('the body must be an object with a list "inputs"')
    entries = {e.name: e for e in module.manifest.inputs}
    arrays: dict[str, np.ndarray] = {}
    sizes: dict[str, int] = {}
    rest = memoryview(body)[split:]
    for tensor in given:
        entry = _entry_of(tensor, entries, arrays)
        arrays[entry.name], rest = _array(tensor, entry, sizes, rest)
    missing = [f"{n!r} ({_type(e)})" for n, e in entries.items() if n not in arrays]
    if missing:
        raise BadRequest(f"input {', '.join(missing)} is missing")
    beyond = module.manifest.beyond(sizes)
    if beyond:
        raise BadRequest(beyond)
    if rest:
        raise BadRequest(f"{len(rest)} bytes behind the last input belong to none")
    return arrays, request


def _entry_of(tensor: object, entries: Mapping[str, Entry], seen: Mapping[str, object]) -> Entry:
    if not isinstance(tensor, dict) or not isinstance(tensor.get("name"), str):
        raise BadRequest('every input must be an object with a text "name"')
    name = tensor["name"]
    if name not in entries:
        raise BadRequest(f"there is no input {name!r}; the inputs are {', '.join(entries)}")
    if name in seen:
        raise BadRequest(f"input {name!r} is given twice")
    return entries[name]


def _type(entry: Entry) -> str:
    sizes = ",".join(str(d) for d in entry.shape)
    return f"{DATATYPES[entry.dtype]}[{sizes}]"


def _array(
    tensor: dict[str, Any], entry: Entry, sizes: dict[str, int], rest: memoryview
) -> tuple[np.ndarray, memoryview]:
    """Returns an input, and the bytes behind it."""
    shape, kind = tensor.get("shape"), tensor.get("datatype")
    who = f"input {entry.name!r}"
    if kind != DATATYPES[entry.dtype]:
        raise BadRequest(f"{who} must have the datatype {DATATYPES[entry.dtype]}, not {kind!r}")
    whole = isinstance(shape, list) and all(type(d) is int and d >= 0 for d in shape)
    if not whole or not _fits(shape, entry.shape, sizes):
        known = ", ".join(f"{n}={d}" for n, d in sizes.items())
        more = f" with {known}" if known else ""
        raise BadRequest(f"{who} must have the shape of {_type(entry)}{more}, not {shape!r}")
    dtype = np.dtype(ml_dtypes.bfloat16 if entry.dtype == "bfloat16" else entry.dtype)
    count = math.prod(int(d) for d in shape or ())
    size = _parameters(tensor).get("binary_data_size")
    if size is not None:
        if size != count * dtype.itemsize or size > len(rest):
            raise BadRequest(f"{who} needs {count * dtype.itemsize} bytes: binary_data_size is "
                             f"{size!r}, and {len(rest)} follow")  # fmt: skip
        return np.frombuffer(rest[:size], dtype).reshape(shape), rest[size:]
    return _from_json(tensor.get("data"), count, dtype, who).reshape(shape), rest


def _parameters(part: Mapping[str, object]) -> Mapping[str, Any]:
    found = part.get("parameters") or {}
    if not isinstance(found, dict):
        raise BadRequest('"parameters" must be an object')
    return found


def _fits(shape: Sequence[int], wanted: Sequence[int | str], sizes: dict[str, int]) -> bool:
    """Whether sizes are as wanted; sizes of one name are equal, and at least 1."""
    if len(shape) != len(wanted):
        return False
    found = dict(sizes)
    for size, w in zip(shape, wanted):
        known = found.setdefault(w, size) if isinstance(w, str) else w
        if size != known or (isinstance(w, str) and size < 1):
            return False
    sizes.update(found)
    return True


def _from_json(data: object, count: int, dtype: np.dtype, who: str) -> np.ndarray:
    """Elements from a list, flat or nested: numbers of the right kind that the dtype can hold."""
    if not isinstance(data, list):
        raise BadRequest(f'{who} needs a list "data"')
    try:
        found = np.asarray(data)
    except (ValueError, OverflowError):
        raise BadRequest(f"{who} has rows of several lengths, or numbers too large") from None
    if found.size != count:
        raise BadRequest(f"{who} has {found.size} elements, its shape says {count}")
    is_float = dtype.kind == "f" or dtype == ml_dtypes.bfloat16
    allowed = "b" if dtype.kind == "b" else "iuf" if is_float else "iu"
    if count and found.dtype.kind not in allowed:
        raise BadRequest(f"{who} has elements that are no {dtype}")
    if count and not is_float and dtype.kind != "b":
        bounds = np.iinfo(dtype)
        if int(found.min()) < bounds.min or int(found.max()) > bounds.max:
            raise BadRequest(f"{who} has elements outside of {dtype}")
    with np.errstate(over="ignore"):
        cast = found.astype(dtype)
    if is_float and not np.isfinite(cast.astype(np.float64)[np.isfinite(found)]).all():
        raise BadRequest(f"{who} has elements outside of {dtype}")
    return cast


def write_answer(
    outputs: Sequence[np.ndarray], request: Mapping[str, object], module: Module, model_name: str
) -> tuple[bytes, int | None]:
    """Returns an answer of the protocol, and the length of its JSON if bytes follow it.

    Args:
        outputs: The arrays.
        request: What was asked for.
        module: What made them.
        model_name: What the server calls it.

    Raises:
        BadRequest: if an output is asked for that there is not.
    """
    entries = {e.name: (e, array) for e, array in zip(module.manifest.outputs, outputs)}
    asked = request.get("outputs") or [{"name": name} for name in entries]
    everything = _parameters(request).get("binary_data_output", False)
    if not isinstance(asked, list):
        raise BadRequest('"outputs" must be a list')
    described, buffers = [], []
    for want in asked:
        name = want.get("name") if isinstance(want, dict) else None
        if not isinstance(name, str) or name not in entries:
            raise BadRequest(f"there is no output {want!r}; the outputs are {', '.join(entries)}")
        entry, array = entries[name]
        output: dict[str, object] = {"name": entry.name, "datatype": DATATYPES[entry.dtype],
                                "shape": list(array.shape)}  # fmt: skip
        if _parameters(want).get("binary_data", everything):
            buffers.append(np.ascontiguousarray(array).tobytes())
            output["parameters"] = {"binary_data_size": len(buffers[-1])}
        else:
            output["data"] = _to_json(array)
        described.append(output)
    answer: dict[str, object] = {"model_name": model_name, "outputs": described}
    if "id" in request:
        answer["id"] = request["id"]
    head = json.dumps(answer, allow_nan=False).encode()
    return b"".join([head, *buffers]), len(head) if buffers else None


def _to_json(array: np.ndarray) -> list[float] | list[object]:
    """Elements as a flat list; JSON has no NaN and no infinity, which become null."""
    flat = array.ravel()
    if array.dtype.kind in "biu":
        return flat.tolist()
    wide = flat.astype(np.float64)
    finite = np.isfinite(wide)
    if finite.all():
        return wide.tolist()
    return [v if ok else None for v, ok in zip(wide.tolist(), finite.tolist())]


def describe(module: Module, batcher: Batcher) -> dict[str, object]:
    """Returns the protocol's description of a model.

    Args:
        module: The module.
        batcher: What joins its requests to calls.
    """
    m = module.manifest

    def tensors(entries: Sequence[Entry]) -> list[dict[str, object]]:
        return [
            {"name": e.name, "datatype": DATATYPES[e.dtype],
             "shape": [-1 if isinstance(d, str) else d for d in e.shape]}
            for e in entries
        ]  # fmt: skip

    shared = batcher.single is None
    batching = {"shared": shared, "max_rows": batcher.max_rows} if shared else {
        "shared": False, "because": batcher.single
    }  # fmt: skip
    return {"name": m.name, "platform": "tvmgraph", "versions": ["1"], "inputs": tensors(m.inputs),
            "outputs": tensors(m.outputs), "parameters": {"batching": batching}}  # fmt: skip


# ---- the application ----------------------------------------------------------------------------


def make_app(
    module: Module, name: str = "", max_body: int = 64 << 20, **batching: object
) -> Starlette:
    """Returns an ASGI application that serves a module.

    Args:
        module: The module.
        name: What it is called in addresses; the name in its file by default.
        max_body: Bytes of a request at most.
        batching: Settings of :class:`.batches.Batcher`.

    Raises:
        NotFoundError: if Starlette is not installed.
        BadRequest: if the module has a dtype that the protocol has no name for.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError as e:
        raise _not_installed() from e
    for entry in (*module.manifest.inputs, *module.manifest.outputs):
        if entry.dtype not in DATATYPES:
            raise BadRequest(f"{entry.name!r} is {entry.dtype}, which the protocol does not have")
    service = _Service(module, name or module.manifest.name, max_body, batching)
    model = "/v2/models/{model}"
    routes = [
        Route("/v2", service.server), Route("/v2/health/live", service.live),
        Route("/v2/health/ready", service.ready), Route(model, service.model),
        Route(f"{model}/ready", service.ready), Route(f"{model}/stats", service.stats),
        Route(f"{model}/infer", service.infer, methods=["POST"]),
    ]  # fmt: skip
    handlers: dict[object, object] = {BadRequest: _refused, Overloaded: _overloaded}
    return Starlette(routes=routes, lifespan=service.lifespan, exception_handlers=handlers)


async def _refused(_: object, error: Any) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": str(error)}, error.status)


async def _overloaded(_: object, error: object) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": str(error)}, 503, {"Retry-After": "1"})


class _Service:
    """The addresses of one module."""

    def __init__(
        self, module: Module, name: str, max_body: int, batching: Mapping[str, Any]
    ) -> None:
        from starlette.responses import JSONResponse, Response

        self.module, self.name, self.max_body, self.batching = module, name, max_body, batching
        self.batcher: Batcher | None = None
        self.json, self.response = JSONResponse, Response

    @asynccontextmanager
    async def lifespan(self, _: object) -> AsyncIterator[None]:
        """Takes requests from here on; those that wait at the end are answered."""
        batcher = Batcher(self.module, **self.batching)
        await batcher.start()
        self.batcher = batcher
        yield
        self.batcher = None  # not ready any more
        await batcher.stop()

    def _known(self, request: Request) -> Batcher:
        asked = request.path_params.get("model", self.name)
        if asked != self.name:
            raise BadRequest(f"there is no model {asked!r}; this server has {self.name!r}", 404)
        if self.batcher is None:
            raise BadRequest("the server stops", 503)
        return self.batcher

    async def server(self, _: object) -> Response:
        """What this server is."""
        return self.json({"name": "tvmgraph", "extensions": ["binary_tensor_data"]})

    async def live(self, _: object) -> Response:
        """The process runs."""
        return self.json({"live": True})

    async def ready(self, request: Request) -> Response:
        """Requests are taken."""
        self._known(request)
        return self.json({"ready": True})

    async def model(self, request: Request) -> Response:
        """Names, types and sizes of inputs and outputs."""
        batcher = self._known(request)
        return self.json({**describe(self.module, batcher), "name": self.name})

    async def stats(self, request: Request) -> Response:
        """Counts since the start."""
        batcher = self._known(request)
        return self.json({**dataclasses.asdict(batcher.counts), "waiting": batcher.waiting})

    async def infer(self, request: Request) -> Response:
        """Runs the module."""
        batcher = self._known(request)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self.max_body:
                raise BadRequest(f"the body is larger than {self.max_body:,} bytes", 413)
        arrays, asked = read_request(bytes(body), request.headers.get(_LENGTH), self.module)
        try:
            outputs = await batcher.infer(arrays)
        except TvmgraphError as e:
            raise BadRequest(str(e)) from e
        answer, length = write_answer(outputs, asked, self.module, self.name)
        if length is None:
            return self.response(answer, media_type="application/json")
        headers = {_LENGTH: str(length)}
        return self.response(answer, media_type="application/octet-stream", headers=headers)


# ---- the command --------------------------------------------------------------------------------


def serve(
    path: str, threads: int | None = None, public_key: str | None = None, **options: Any
) -> tuple[Any, str]:
    """Loads a module and returns the application that serves it, and its name.

    Args:
        path: The module.
        threads: Workers of one call, ``None`` for the usable cores.
        public_key: A PEM file with the key that must have signed the module.
        options: Of :func:`make_app`; ``name`` is the file's by default.

    Raises:
        LoadError: if the file is damaged, or made for another machine.
        NotFoundError: if Starlette is not installed.
    """
    module = load(path, threads, public_key=public_key)
    name = options.pop("name", "") or Path(path).stem
    return make_app(module, name, **options), name


def listen(host: str, port: int, name: str) -> tuple[socket.socket, str]:
    """Takes an address, so that what is said of it is true.

    Args:
        host: The address to listen on.
        port: The port; a free one if 0.
        name: Of the model.

    Returns:
        The socket for :func:`run_server`, and the model's URL.

    Raises:
        OSError: if the address is taken, or no address of this machine.
    """
    family, shown = (socket.AF_INET6, f"[{host}]") if ":" in host else (socket.AF_INET, host)
    taken = socket.create_server((host, port), family=family)
    return taken, f"http://{shown}:{taken.getsockname()[1]}/v2/models/{quote(name)}"


def run_server(app: object, taken: socket.socket) -> None:
    """Serves an application until SIGTERM or Ctrl-C; requests that have begun are answered.

    Args:
        app: The application.
        taken: What it listens on, see :func:`listen`.

    Raises:
        NotFoundError: if uvicorn is not installed.
    """
    try:
        import uvicorn
    except ImportError as e:
        raise _not_installed() from e
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=30)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[taken])


def _not_installed() -> NotFoundError:
    return NotFoundError("serving needs Starlette and uvicorn", op="serve",
                         fix="pip install 'tvmgraph[serve]'")  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the command line of ``python -m tvmgraph.runtime.serving``.

    Args:
        arguments: The command line; that of the process by default.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("module", help="a compiled module")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--threads", type=int, help="workers of one call; all cores by default")
    parser.add_argument(
        "--name", default="", help="of the model, in addresses; the file's by default"
    )
    parser.add_argument("--max-rows", type=int, default=32, help="rows of one call")
    parser.add_argument("--max-wait-ms", type=float, default=2.0, help="to wait for others")
    parser.add_argument("--max-queue", type=int, default=1024, help="requests that may wait")
    parser.add_argument("--calls", type=int, default=1, help="calls at the same time")
    parser.add_argument("--public-key", help="PEM file with the key that signed the module")
    given = parser.parse_args(arguments)
    try:
        app, name = serve(
            given.module, given.threads, given.public_key, name=given.name,
            max_rows=given.max_rows, max_wait=given.max_wait_ms / 1e3, max_queue=given.max_queue,
            calls=given.calls,
        )  # fmt: skip
        taken, url = listen(given.host, given.port, name)
        print(url, flush=True)
        run_server(app, taken)
    except (TvmgraphError, OSError) as e:
        parser.exit(2, f"{e}\n")


if __name__ == "__main__":
    main()
