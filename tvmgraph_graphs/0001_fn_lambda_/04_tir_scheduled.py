# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis
# from tvm.script import relax as R

@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def fused_expand_dims_broadcast_to_reshape(p0_x: T.Buffer((T.int64(1000), T.int64(1000)), "float32"), T_reshape_intermediate: T.Buffer((T.int64(1000), T.int64(2000)), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        with T.sblock("root"):
            T.reads()
            T.writes()
            for v in T.parallel(T.int64(1000)):
                for v_1 in range(T.int64(125)):
                    for v_2 in T.vectorized(T.int64(16)):
                        T_reshape_intermediate[v, v_1 * T.int64(16) + v_2] = p0_x[T.int64(0), v * T.int64(1000) + (v_1 * T.int64(16) + v_2) // T.int64(2)]

    @R.function
    def main(p0_x: R.Tensor((1000, 1000), dtype="float32")) -> R.Tensor((1000, 2000), dtype="float32"):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.fused_expand_dims_broadcast_to_reshape, (p0_x,), out_ty=R.Tensor((1000, 2000), dtype="float32"))
            R.output(gv)
        return gv