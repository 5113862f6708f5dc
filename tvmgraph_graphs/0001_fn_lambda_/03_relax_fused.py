# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis
# from tvm.script import relax as R

@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def fused_expand_dims_broadcast_to_reshape(p0_x: T.Buffer((T.int64(1000), T.int64(1000)), "float32"), T_reshape_intermediate: T.Buffer((T.int64(1000), T.int64(2000)), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        expand_dims_intermediate = T.sblock_alloc_buffer((T.int64(1000), T.int64(1000), T.int64(1)))
        T_broadcast_to_intermediate = T.sblock_alloc_buffer((T.int64(1000), T.int64(1000), T.int64(2)))
        for i0, i1, i2 in T.grid(T.int64(1000), T.int64(1000), T.int64(1)):
            with T.sblock("expand_dims"):
                v_i0, v_i1, v_i2 = T.axis.remap("SSS", [i0, i1, i2])
                T.reads(p0_x[v_i0, v_i1])
                T.writes(expand_dims_intermediate[v_i0, v_i1, v_i2])
                expand_dims_intermediate[v_i0, v_i1, v_i2] = p0_x[v_i0, v_i1]
        for ax0, ax1, ax2 in T.grid(T.int64(1000), T.int64(1000), T.int64(2)):
            with T.sblock("T_broadcast_to"):
                v_ax0, v_ax1, v_ax2 = T.axis.remap("SSS", [ax0, ax1, ax2])
                T.reads(expand_dims_intermediate[v_ax0, v_ax1, T.int64(0)])
                T.writes(T_broadcast_to_intermediate[v_ax0, v_ax1, v_ax2])
                T_broadcast_to_intermediate[v_ax0, v_ax1, v_ax2] = expand_dims_intermediate[v_ax0, v_ax1, T.int64(0)]
        for ax0, ax1 in T.grid(T.int64(1000), T.int64(2000)):
            with T.sblock("T_reshape"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(T_broadcast_to_intermediate[(v_ax1 // T.int64(2000) + v_ax0) % T.int64(1000), v_ax1 % T.int64(2000) // T.int64(2), v_ax1 % T.int64(2)])
                T.writes(T_reshape_intermediate[v_ax0, v_ax1])
                T_reshape_intermediate[v_ax0, v_ax1] = T_broadcast_to_intermediate[(v_ax1 // T.int64(2000) + v_ax0) % T.int64(1000), v_ax1 % T.int64(2000) // T.int64(2), v_ax1 % T.int64(2)]

    @R.function
    def main(p0_x: R.Tensor((1000, 1000), dtype="float32")) -> R.Tensor((1000, 2000), dtype="float32"):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.fused_expand_dims_broadcast_to_reshape, (p0_x,), out_ty=R.Tensor((1000, 2000), dtype="float32"))
            R.output(gv)
        return gv