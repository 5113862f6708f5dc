# from tvm.script import ir as I
# from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(p0_x: R.Tensor((1000, 1000), dtype="float32")) -> R.Tensor((1000, 2000), dtype="float32"):
        with R.dataflow():
            v1_expand_dims_: R.Tensor((1000, 1000, 1), dtype="float32") = R.expand_dims(p0_x, axis=[2])
            v2_broadcast_to_: R.Tensor((1000, 1000, 2), dtype="float32") = R.broadcast_to(v1_expand_dims_, R.shape([1000, 1000, 2]))
            v3_reshape_: R.Tensor((1000, 2000), dtype="float32") = R.reshape(v2_broadcast_to_, R.shape([1000, 2000]))
            out_3_: R.Tensor((1000, 2000), dtype="float32") = v3_reshape_
            R.output(out_3_)
        return out_3_