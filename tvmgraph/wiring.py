"""Which function of a higher room answers each hook of :mod:`tvmgraph.hooks`."""

from __future__ import annotations

from tvmgraph import hooks
from tvmgraph.hooks import Hook

PROVIDERS: dict[Hook, str] = {
    hooks.initializer: "tvmgraph.common.initializer:initializer",
    hooks.to_gpu: "tvmgraph.compiler.cuda.eager:to_gpu",
    hooks.copy_on_gpu: "tvmgraph.runtime.device_tensor:copy_on",
    hooks.adopt_on_gpu: "tvmgraph.compiler.cuda.eager:adopt",
    hooks.wait_for_reader: "tvmgraph.runtime.stream:wait_for_reader",
    hooks.use_gpu: "tvmgraph.compiler.cuda.eager:use",
    hooks.gpu_target: "tvmgraph.runtime.cuda:target_of",
    hooks.eager_kernel: "tvmgraph.compiler.eager:make",
    hooks.eager_fusion: "tvmgraph.jit.eager_fusion:EagerFusion",
    hooks.one_node: "tvmgraph.graph.builder:one_node",
    hooks.llvm_features: "tvmgraph.backend.target:llvm_features",
    hooks.evaluate: "tvmgraph.eager:evaluate",
    hooks.loop: "tvmgraph.capture.structured:loop",
    hooks.reverse: "tvmgraph.autodiff.reverse:reverse",
    hooks.reverse_step: "tvmgraph.autodiff.reverse:reverse_step",
    hooks.tangent_loop: "tvmgraph.autodiff.reverse:tangent_loop",
    hooks.vjp: "tvmgraph.autodiff:vjp",
    hooks.grad: "tvmgraph.autodiff:grad",
    hooks.jvp: "tvmgraph.autodiff:jvp",
    hooks.custom_vjp: "tvmgraph.autodiff.custom:custom_vjp",
    hooks.compile_graph: "tvmgraph.compiler:compile_graph",
    hooks.shard_graph: "tvmgraph.distributed.sharded:shard_graph",
    hooks.shard_primitive: "tvmgraph.distributed.api:shard_primitive",
    hooks.shard: "tvmgraph.distributed.api:shard",
    hooks.draw: "tvmgraph.view:draw",
    hooks.export: "tvmgraph.export.api:export",
    hooks.write_rows: "tvmgraph.dataset.mindrecord_writer:write_rows",
    hooks.load_mindir: "tvmgraph.train.mindir:MindirCell",
    hooks.format_of: "tvmgraph.export.api:format_of",
}


def connect() -> None:
    """Names the provider of every hook; nothing is imported."""
    for hook, provider in PROVIDERS.items():
        hook.provide(provider)
