"""MindCV's architectures with an import alias only: ``python -m benchmarks.zoo [NAME ...]``.

``import mindspore`` gives tvmgraph here; nothing of the zoo is changed. Every architecture is built
and compared with MindSpore: names, shapes and kinds of the parameters, and the result on one image;
then eager with compiled code, with ONNX Runtime, and one compiled training step is done. The table
goes to ``docs/zoo.md``. The zoo and MindSpore need an environment of their own, which also makes
what is compared with::

    pip install --no-deps --target ZOO mindcv
    python -m benchmarks.zoo --zoo ZOO --reference /path/to/python/with/mindspore
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]

#: One of each family, the smallest that it has.
NAMES = """
mobilenet_v1_025 mobilenet_v2_035_224 mobilenet_v3_small_075 shufflenet_v1_g3_05 shufflenet_v2_x0_5
squeezenet1_0 mnasnet_050 ghostnet_050 mobilevit_xx_small edgenext_xx_small regnet_x_200mf
regnet_y_200mf convnextv2_atto rexnet_09 pvt_v2_b0 mixnet_s pit_ti nasnet_a_4x1056 pnasnet
efficientnet_b0 coat_tiny coat_lite_tiny convit_tiny crossvit_9 googlenet densenet121 repvgg_a0
cmt_tiny visformer_tiny resnest14 xcit_tiny_12_p16_224 poolformer_s12 resnet18 seresnet18 skresnet18
cait_xxs24_224 seresnext26_32x4d mlp_mixer_s_p32 efficientnet_v2_s xception resnext50_32x4d
resnetv2_50 BiT_resnet50 res2net50 inception_v3 convnext_tiny swinv2_tiny_window8 swin_tiny
skresnext50_32x4d repmlp_t224 dpn92 hrnet_w32 inception_v4 vit_b_32_224 mae_b_16_224_finetune
senet154 vgg11
""".split()  # noqa: SIM905  (one word each)

#: Why MindSpore 2.10 has no result to compare with.
REFUSED = {
    "halonet_50t": "needs operators that MindSpore has on other devices only",
    "pvt_tiny": "calls ops.ResizeBilinear, which MindSpore has no longer",
    "volo_d1": "gives ops.pad pairs, which MindSpore has no longer",
    "rexnet_09": "reads parameters before they are initialized",
}

#: Where the table of the page ends; what follows was compared by hand, and is kept.
OTHERS = "\n## Other zoos\n"
PAGE = ROOT / "docs" / "zoo.md"


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module of ``mindspore`` as that of tvmgraph."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Returns a spec for names of MindSpore."""
        known = name.partition(".")[0] == "mindspore"
        return importlib.machinery.ModuleSpec(name, self) if known else None

    def create_module(self, spec: Any) -> Any:
        """Returns the module of tvmgraph."""
        found = importlib.import_module("tvmgraph" + spec.name.removeprefix("mindspore"))
        self.own = found.__spec__, found.__loader__
        return found

    def exec_module(self, module: Any) -> None:
        """Gives the module its own spec back."""
        module.__spec__, module.__loader__ = self.own


def built(name: str) -> tuple[Any, dict[str, Any], tuple[int, ...]]:
    """Returns a network, its parameters and the shape of its images."""
    import mindcv  # pyright: ignore
    import mindspore as ms  # pyright: ignore
    from mindcv.models import registry  # pyright: ignore

    ms.set_seed(1)
    net = mindcv.create_model(name).set_train(False)
    settings = registry._model_pretrained_cfgs.get(name, {})
    size = (3, 256, 256) if name.startswith("swinv2") else settings.get("input_size", (3, 224, 224))
    return net, {p.name: p for _, p in net.parameters_and_names()}, (1, *size)


def fresh(name: str, value: np.ndarray) -> np.ndarray:
    """Returns values that exercise every parameter; they depend on its name."""
    if value.dtype.kind != "f":
        return value
    noise = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(value.shape)
    value = value + 0.02 * noise.astype(value.dtype)
    return np.abs(value) if name.endswith("moving_variance") else value


def flat(value: Any) -> list[np.ndarray]:
    """Returns the arrays of nested results."""
    parts = value if isinstance(value, (tuple, list)) else None
    return [value.asnumpy()] if parts is None else [a for v in parts for a in flat(v)]


def record(name: str, file: Path) -> None:
    """Writes weights, an image and the result on it; runs where MindSpore is installed."""
    import mindspore as ms  # pyright: ignore

    ms.set_context(mode=ms.PYNATIVE_MODE)
    net, parameters, size = built(name)
    kept = {}
    for key, p in parameters.items():
        kept[f"w:{key}"] = fresh(key, p.asnumpy())
        p.set_data(ms.Tensor(kept[f"w:{key}"]))
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    found = flat(net(ms.Tensor(x)))
    np.savez(file, x=x, **kept, **{f"y:{k}": v for k, v in enumerate(found)})  # pyright: ignore


def apart(found: list[np.ndarray], want: list[np.ndarray]) -> float:
    """Returns the largest difference of two results, as a share of the largest element."""
    assert [v.shape for v in found] == [v.shape for v in want]
    shares = [np.abs(a - b).max() / (np.abs(b).max() + 1e-30) for a, b in zip(found, want)]
    return float(max(shares))


def checked(name: str, file: Path) -> dict[str, Any]:
    """Returns the row of an architecture; what fails is there as text."""
    import onnxruntime as ort

    import tvmgraph as ms

    row: dict[str, Any] = {"name": name}
    net, parameters, size = built(name)
    row["parameters"] = sum(p.size for p in parameters.values())
    kept = dict(np.load(file)) if file.exists() else {}
    x = kept.get("x", np.random.default_rng(0).standard_normal(size).astype(np.float32))
    if kept:
        want = {k[2:]: v.shape for k, v in kept.items() if k[:2] == "w:"}
        row["names"] = want == {k: p.shape for k, p in parameters.items()}
    for key, p in parameters.items():
        p.set_data(ms.Tensor(kept.get(f"w:{key}", fresh(key, p.asnumpy()))))
    image, eager = ms.Tensor(x), []

    def run_eager() -> float | None:
        eager[:] = flat(net(image))
        want = [kept[k] for k in sorted(kept) if k[:2] == "y:"]
        return apart(eager, want) if want else None

    def run_onnx() -> float:
        model = str(file.with_suffix(".onnx"))
        ms.export(net, image, file_name=model, file_format="ONNX")
        session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        found: list[Any] = session.run(None, {session.get_inputs()[0].name: x})
        for left in file.parent.glob(f"{file.stem}.onnx*"):
            left.unlink()
        return apart(found, eager)

    def run_compiled() -> float:
        start = time.time()
        found = flat(ms.jit(net)(image))
        row["seconds"] = round(time.time() - start, 1)
        return apart(found, eager)

    def run_step() -> float:
        loss = ms.nn.CrossEntropyLoss()

        def forward(batch: Any, labels: Any) -> Any:
            found = net(batch)
            return loss(found[0] if isinstance(found, (tuple, list)) else found, labels)

        net.set_train()
        optimizer = ms.nn.Momentum(net.trainable_params(), 1e-3, 0.9)
        gradients = ms.value_and_grad(forward, None, optimizer.parameters)

        def step(batch: Any, labels: Any) -> Any:
            value, found = gradients(batch, labels)
            optimizer(found)
            return value

        before = optimizer.parameters[0].asnumpy().copy()
        found = float(ms.jit(step)(ms.Tensor(np.concatenate([x, x[..., ::-1]])), ms.Tensor([1, 2])))
        assert np.isfinite(found) and (optimizer.parameters[0].asnumpy() != before).any()
        return found

    stages: dict[str, Callable[[], Any]] = {
        "eager": run_eager, "compiled": run_compiled, "onnx": run_onnx, "step": run_step,
    }  # fmt: skip
    for stage, run in stages.items():
        try:
            row[stage] = run()
        except Exception as error:
            row[stage] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return row


def document(rows: list[dict[str, Any]]) -> str:
    """Returns the page of the table."""

    def cell(value: Any) -> str:
        return f"{value:.0e}" if isinstance(value, float) else "—" if value is None else str(value)

    lines = [
        "# A model zoo",
        "",
        "Written by `python -m benchmarks.zoo`: MindCV 0.3, of which nothing is changed but what",
        "`import mindspore` finds. Differences are shares of the largest element: of eager code",
        "and MindSpore 2.10 of the same weights, of compiled code and ONNX Runtime to eager code.",
        "The step is the loss of a compiled training step that changed the weights; a dash is what",
        "was not measured. Names and shapes are MindSpore's in all 267 architectures it builds.",
        "The seconds are of the first compiled call, on two cores; rows without were measured on",
        "earlier versions than the others.",
        "",
        "| architecture | parameters, M | names and shapes | MindSpore | compiled | ONNX | step "
        "| compile, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        same = {True: "same", False: "differ"}.get(r.get("names", ""), "—")
        step = f"{r['step']:.2f}" if isinstance(r.get("step"), float) else cell(r.get("step"))
        parts = [cell(r.get(k)) for k in ("eager", "compiled", "onnx")]
        seconds = r.get("seconds", "—")
        lines.append(f"| {r['name']} | {r['parameters'] / 1e6:.1f} | {same} | "
                     + " | ".join([*parts, step, str(seconds)]) + " |")  # fmt: skip
    lines += ["", "MindSpore 2.10 itself refuses:", ""]
    lines += [f"- `{name}` {why}." for name, why in REFUSED.items()]
    _, mark, others = PAGE.read_text().partition(OTHERS)
    return "\n".join(lines) + "\n" + mark + others


def main() -> None:
    """Checks the architectures of the command line and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="one of each family by default")
    parser.add_argument("--zoo", default="zoo", type=Path, help="where mindcv was installed")
    parser.add_argument("--work", default="zoo_results", type=Path, help="where results are kept")
    parser.add_argument("--reference", default="", help="a Python with MindSpore")
    given = parser.parse_args()
    names, zoo, work, reference = given.names, given.zoo, given.work, given.reference
    work.mkdir(exist_ok=True)
    sys.path.insert(0, str(zoo.resolve()))
    sys.meta_path.insert(0, Alias())
    results = work / "rows.json"
    rows = json.loads(results.read_text()) if results.exists() else {}
    for name in names or NAMES:
        file = work.resolve() / f"{name}.npz"
        if reference and not file.exists():
            environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path[:1], str(ROOT)])}
            code = f"from benchmarks import zoo; zoo.record({name!r}, zoo.Path({str(file)!r}))"
            subprocess.run([reference, "-c", code], env=environment, check=False)
        rows[name] = checked(name, file)
        print(json.dumps(rows[name]), flush=True)
        results.write_text(json.dumps(rows))
        gc.collect()
    known = sorted(rows.values(), key=lambda r: r["parameters"])
    PAGE.write_text(document(known))


if __name__ == "__main__":
    main()
