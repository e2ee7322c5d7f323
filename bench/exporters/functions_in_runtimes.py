#!/usr/bin/env python3
"""Which runtimes load a model whose one node calls a function of the model (Conv, Relu), in every spelling of such a function.

    bench/install_peers.sh
    bench/exporters/functions_in_runtimes.py

IR and opset versions, domains, overloads, value_info of the body's tensors. onnx.checker judges every file, and the same net with the
function put in place (onnx.inliner) shows that nothing else is in the way. Exit status: 0 as docs/exporters.md says (ONNX Runtime
runs all of them, OpenVINO none but those put in place), 1 otherwise.
"""
import itertools
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from peerlib import environment  # noqa: E402

VERSIONS = ((8, 13), (8, 17), (9, 17), (10, 17), (10, 21), (11, 22), (12, 23), (13, 24))
DOMAINS = ("dev.opfuse", "local", "com.microsoft", "ai.onnx.contrib")


def call_of_a_function(version, opset, domain, overload, value_info):
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
    random = np.random.default_rng(0)
    weights = {"w": random.standard_normal((4, 3, 3, 3), dtype=np.float32), "b": random.standard_normal(4, dtype=np.float32)}
    body = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])]
    function = helper.make_function(domain, "FusedConvBNReLU", ["x", "w", "b"], ["y"], body, [helper.make_opsetid("", opset)])
    call = helper.make_node(function.name, ["x", "w", "b"], ["y"], domain=domain, name="call")
    if overload:
        function.overload = call.overload = overload
    if value_info:
        function.value_info.extend([helper.make_tensor_value_info("c", TensorProto.FLOAT, [1, 4, 8, 8])])
    graph = helper.make_graph([call], "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 8, 8])],
                              [numpy_helper.from_array(value, name) for name, value in weights.items()])
    return helper.make_model(graph, functions=[function], ir_version=version,
                             opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(domain, 1)])


def in_onnx_runtime(path, x):
    import onnxruntime
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def in_openvino(path, x):
    import openvino
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled({"x": x})[compiled.output(0)]


def attempt(run, path, x):
    """(result or None, what happened)"""
    try:
        return run(path, x), "runs"
    except Exception as error:  # noqa: BLE001: a refusal of any kind is what this script is about
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return None, "refused: " + (lines or ["no message"])[-1]


def main():
    import numpy as np
    import onnx
    import onnx.inliner
    import onnxruntime
    import openvino
    print(f"onnx {onnx.__version__}, ONNX Runtime {onnxruntime.__version__}, OpenVINO {openvino.__version__}")
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8), dtype=np.float32)
    expected = True
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "m.onnx")
        for (version, opset), domain, overload, value_info in itertools.product(VERSIONS, DOMAINS, ("", "a"), (False, True)):
            if version < 10 and (overload or value_info):  # fields of IR 10
                continue
            model = call_of_a_function(version, opset, domain, overload, value_info)
            onnx.checker.check_model(model, full_check=True)
            outcomes, results = [], []
            for put_in_place, run in ((False, in_onnx_runtime), (False, in_openvino), (True, in_openvino)):
                onnx.save(onnx.inliner.inline_local_functions(model) if put_in_place else model, path)
                result, outcome = attempt(run, path, x)
                results.append(result)
                outcomes.append(outcome)
            same = results[0] is not None and results[2] is not None and np.abs(results[0] - results[2]).max() < 1e-4
            expected = expected and same and results[1] is None
            label = f"IR {version}, opset {opset}, {domain}" + (", overload" if overload else "") + (", value_info" if value_info else "")
            print(f"{label}: ONNX Runtime {outcomes[0]}; OpenVINO {outcomes[1]}; in place {outcomes[2]}", flush=True)
    return 0 if expected else 1


if __name__ == "__main__":
    environment.enter_virtual_environment("functions_in_runtimes")
    sys.exit(main())
