"""Networks nobody here wrote, from ONNX, beside ONNX Runtime.

    python -m benchmarks.architectures export FOLDER [NAME ...]   # where timm and transformers are
    python -m benchmarks.architectures compare FOLDER [NAME ...]  # where onnxruntime is
    python -m benchmarks.architectures record FOLDER [NAME ...]

The first command writes architectures of timm, transformers and the libraries of
``benchmarks.other_networks`` with random weights; nothing is downloaded. The second runs each in a
process of its own, on one thread, in turns, and prints CPU time per call, of the first call, and
the memory of the process; the third also puts the table into RESULTS.md. ``TVMGRAPH_CPU`` limits
the instructions of tvmgraph; those of ONNX Runtime cannot be limited.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.other_networks import OTHERS
from benchmarks.results import summary

TIMM = """
densenet121 edgenext_small coatnet_0_rw_224 tf_efficientnetv2_s swin_tiny_patch4_window7_224
convnextv2_atto mobilevit_s levit_128 mobilenetv3_large_100 efficientformer_l1 poolformer_s12
regnety_016 hrnet_w18_small dla34 ese_vovnet19b_dw vit_small_patch16_224 maxvit_tiny_rw_224
ghostnetv2_100 cait_xxs24_224 convit_tiny sequencer2d_s caformer_s18 mobilenetv4_conv_small
""".split()  # noqa: SIM905  (one word each)
#: Classes of transformers with what their configuration has other than by default.
TRANSFORMERS: dict[str, dict[str, Any]] = {
    "Bert": {"num_hidden_layers": 4}, "GPT2": {"n_layer": 4}, "OPT": {"num_hidden_layers": 4},
    "DistilBert": {"n_layers": 4}, "Roberta": {"num_hidden_layers": 4},
    "GPTNeo": {"num_layers": 4, "hidden_size": 768, "num_heads": 12,
               "attention_types": [[["global", "local"], 2]]},
    "Llama": {"num_hidden_layers": 2, "hidden_size": 1024, "intermediate_size": 2816,
              "num_attention_heads": 16},
    "Qwen2": {"num_hidden_layers": 2, "hidden_size": 896, "intermediate_size": 4864,
              "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 32000},
}  # fmt: skip
_SECONDS = 4.0  # of measuring both


def _built(name: str) -> tuple[Any, tuple[Any, ...]]:
    import torch  # pyright: ignore

    torch.manual_seed(0)
    if name in OTHERS:
        return OTHERS[name]()
    if name in TRANSFORMERS:
        import transformers  # pyright: ignore

        config = getattr(transformers, f"{name}Config")(**TRANSFORMERS[name])
        net = getattr(transformers, f"{name}Model")(config).eval()

        class Hidden(torch.nn.Module):
            def forward(self, ids: Any) -> Any:
                more = {} if name in ("Bert", "DistilBert", "Roberta") else {"use_cache": False}
                return net(input_ids=ids, **more)[0]

        wrapped = Hidden()
        wrapped.net = net
        return wrapped, (torch.randint(5, 1000, (1, 128)),)
    import timm  # pyright: ignore

    net = timm.create_model(name, pretrained=False).eval()
    return net, (torch.randn(1, *net.pretrained_cfg.get("input_size", (3, 224, 224))),)


def export(folder: Path, names: list[str]) -> None:
    """Writes the models, each with its inputs."""
    import torch  # pyright: ignore

    folder.mkdir(exist_ok=True)
    for name in names:
        net, args = _built(name)
        try:
            torch.onnx.export(
                net, args, str(folder / f"{name}.onnx"), dynamo=True, external_data=False
            )
        except torch.onnx.errors.OnnxExporterError as error:  # of some versions, of some networks
            print(f"{name} is left out: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        np.savez(folder / f"{name}.npz", *[a.numpy() for a in args])


def measure(folder: Path, name: str) -> None:
    """Prints the row of a model, as JSON."""
    import onnxruntime as ort

    import tvmgraph as ms

    stored = np.load(folder / f"{name}.npz")
    arrays = [stored[k] for k in stored.files]
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        str(folder / f"{name}.onnx"), options, providers=["CPUExecutionProvider"]
    )
    feed = {i.name: a for i, a in zip(session.get_inputs(), arrays)}
    tensors = [ms.Tensor(a) for a in arrays]
    ms.jit(lambda x: x + 1)(ms.Tensor([1.0]))  # imports TVM
    start = time.process_time()
    compiled = ms.jit(ms.onnx.load(folder / f"{name}.onnx").set_train(False))
    result = compiled(*tensors)
    first = time.process_time() - start
    found = result[0] if isinstance(result, tuple) else result
    want = np.asarray(session.run(None, feed)[0])
    apart = float(np.abs(found.asnumpy() - want).max() / np.abs(want).max())
    calls: tuple[Callable[[], Any], ...] = (
        lambda: compiled(*tensors), lambda: session.run(None, feed),
    )  # fmt: skip
    times: tuple[list[float], ...] = [], []
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end or len(times[0]) < 5:
        for call, seconds in zip(calls, times):
            begin = time.thread_time()
            call()
            seconds.append(time.thread_time() - begin)
    ours, theirs = (1e3 * statistics.median(t) for t in times)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps([ours, theirs, apart, first, memory]))


def compare(folder: Path, names: list[str]) -> dict[str, list[float]]:
    """Prints the table, and returns its rows: milliseconds of both, and what else was measured."""
    rows: dict[str, list[float]] = {}
    print(f"{'':32} {'ms':>8} {'ORT ms':>8} {'ours/ORT':>8} {'apart':>8} {'first s':>8} {'MiB':>6}")
    for name in names:
        with tempfile.TemporaryDirectory() as cache:
            settings = dict.fromkeys(("TVM_NUM_THREADS", "OMP_NUM_THREADS"), "1")
            settings |= {"TVMGRAPH_CACHE_DIR": cache, "TVMGRAPH_COMPILE_WORKER": "0"}
            command = [sys.executable, "-m", "benchmarks.architectures", "measure"]
            done = subprocess.run(
                [*command, str(folder), name], env=os.environ | settings, capture_output=True,
                text=True, check=False,
            )  # fmt: skip
        if done.returncode:
            print(f"{name:32} {done.stderr.strip().splitlines()[-1:]}")
            continue
        ours, theirs, apart, first, memory = json.loads(done.stdout.splitlines()[-1])
        rows[name] = [ours, theirs, apart, first, memory]
        print(f"{name:32} {ours:8.2f} {theirs:8.2f} {ours / theirs:8.2f} {apart:8.0e} {first:8.1f} "
              f"{memory:6}", flush=True)  # fmt: skip
    mean, most = summary(rows)
    print(f"{len(rows)} models, geometric mean {mean:.2f}, at most {most:.2f}")
    return rows


def record(folder: Path, names: list[str]) -> None:
    """Prints the table and puts it into RESULTS.md."""
    from benchmarks import report

    cpu = os.environ.get("TVMGRAPH_CPU", "")
    machine = report.machine_description(1, cpu)  # before: it says how busy others were
    report.record("networks", compare(folder, names), machine, cpu)


def main() -> None:
    """Runs the command that is named."""
    what, folder, *names = sys.argv[1:]
    path = Path(folder)
    if what == "export":
        export(path, names or [*TIMM, *TRANSFORMERS, *OTHERS])
    elif what == "measure":
        measure(path, names[0])
    else:
        command = {"compare": compare, "record": record}[what]
        command(path, names or sorted(p.stem for p in path.glob("*.onnx")))


if __name__ == "__main__":
    main()
