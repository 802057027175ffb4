"""ONNX Runtime: `ort.py ROUNDS [THREADS]`: inference of a net of small layers; its threads spin between the layers by default."""

import sys

import numpy
import onnx
import onnx.helper
import onnxruntime

WIDTH, LAYERS = 256, 24
data = numpy.random.default_rng(1)
nodes, weights = [], []
for layer in range(LAYERS):
    values = data.standard_normal((WIDTH, WIDTH)).astype(numpy.float32) / WIDTH**0.5
    weights.append(onnx.numpy_helper.from_array(values, f"w{layer}"))
    nodes += [onnx.helper.make_node("MatMul", [f"x{layer}", f"w{layer}"], [f"m{layer}"]), onnx.helper.make_node("Relu", [f"m{layer}"], [f"x{layer + 1}"])]
value = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [32, WIDTH]) for name in ("x0", f"x{LAYERS}")]
model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "net", value[:1], value[1:], weights), opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
if "no-spinning" in sys.argv:
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
x = data.standard_normal((32, WIDTH)).astype(numpy.float32)
for _ in range(int(sys.argv[1])):
    session.run(None, {"x0": x})
