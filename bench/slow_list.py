#!/usr/bin/env python3
"""The list of operators and models that were slow beside the peers: writes the single layers, then runs bench/peers.py.

    bench/slow_list.py [--models DIR] [--only NAME,...] [-- options of peers.py such as --threads 1 --rounds 6]

The layers are made here (random weights); models (longformer, demucs_conv, bloom, conv_tasnet, segformer_b0, poolformer_s12,
pvt_v2_b0) come from DIR, with weights. Exit status: that of peers.py.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from peerlib import environment

ROOT = pathlib.Path(__file__).resolve().parent
MODELS = ("longformer", "demucs_conv", "bloom", "conv_tasnet", "segformer_b0", "poolformer_s12", "pvt_v2_b0")

# name: input shape, weights [C, O/group, kernel...], attributes of ConvTranspose
TRANSPOSED = {
    "ct2d_k2s2": ((1, 64, 64, 64), (64, 32, 2, 2), {"strides": [2, 2]}),
    "ct2d_k3s2p1op1": ((1, 64, 32, 32), (64, 32, 3, 3),
                       {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "ct2d_k4s2p1": ((1, 64, 32, 32), (64, 32, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "ct2d_k3s1p1": ((1, 64, 32, 32), (64, 32, 3, 3), {"pads": [1, 1, 1, 1]}),
    "ct2d_dw_k4s2p1": ((1, 64, 32, 32), (64, 1, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 64}),
    "ct1d_k8s4": ((1, 128, 500), (128, 64, 8), {"strides": [4]}),
    "ct1d_one_output": ((1, 128, 1000), (128, 1, 16), {"strides": [8]}),
    "ct3d_k2s2": ((1, 32, 16, 16, 16), (32, 16, 2, 2, 2), {"strides": [2, 2, 2]}),
}

# name: input shape, channels of the result, kernel, dilation. Residual blocks of a vocoder (HiFi-GAN) and its last layer
ALONG_TIME = {
    "conv1d_256_k3": ((1, 256, 512), 256, 3, 1),
    "conv1d_128_k7_d3": ((1, 128, 4096), 128, 7, 3),
    "conv1d_64_k11_d5": ((1, 64, 8192), 64, 11, 5),
    "conv1d_32_k7": ((1, 32, 16384), 32, 7, 1),
    "conv1d_one_output_k7": ((1, 32, 16384), 1, 7, 1),
}

# name: input shape, kernel, stride, padding of AveragePool: overlapping windows
AVERAGES = {
    "average_pool_3x3": ((1, 64, 56, 56), 3, 1, 1),
    "average_pool_3x3_s2": ((1, 96, 56, 56), 3, 2, 1),
    "average_pool_5x5": ((1, 32, 28, 28), 5, 1, 2),
}

# name: input shape, factor of Resize: a segmentation head brings its maps to one size
LINEAR_RESIZES = {
    "resize_linear_2x": ((1, 256, 64, 64), 2),
    "resize_linear_4x": ((1, 256, 32, 32), 4),
    "resize_linear_8x": ((1, 256, 16, 16), 8),
}


def save(path, nodes, shapes, constants, output):
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    graph = helper.make_graph(
        nodes, path.stem, [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def draw(rng, shape, fan_in=1):
    return (rng.standard_normal(shape) / fan_in**0.5).astype("float32")


def transposed(folder, rng):
    from onnx import helper
    for name, (shape, weights, attributes) in TRANSPOSED.items():
        outputs = weights[1] * attributes.get("group", 1)
        node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], **attributes)
        save(folder / f"{name}.onnx", [node], [("x", shape)],
             {"w": draw(rng, weights, weights[0]), "b": draw(rng, (outputs,))}, "y")
    nodes = [helper.make_node("Conv", ["x", "w0", "b0"], ["a"], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["a"], ["r"]),
             helper.make_node("ConvTranspose", ["r", "w", "b"], ["t"], strides=[2, 2]),
             helper.make_node("Relu", ["t"], ["u"]),
             helper.make_node("Conv", ["u", "w1", "b1"], ["y"], pads=[1, 1, 1, 1])]
    save(folder / "net_k2s2.onnx", nodes, [("x", (1, 64, 64, 64))],
         {"w0": draw(rng, (64, 64, 3, 3), 576), "b0": draw(rng, (64,)), "w": draw(rng, (64, 32, 2, 2), 64),
          "b": draw(rng, (32,)), "w1": draw(rng, (32, 32, 3, 3), 288), "b1": draw(rng, (32,))}, "y")


def windows(folder, rng):
    from onnx import helper
    for name, (shape, outputs, kernel, dilation) in ALONG_TIME.items():
        pad = dilation * (kernel - 1) // 2
        nodes = [helper.make_node("LeakyRelu", ["x"], ["a"], alpha=0.1),
                 helper.make_node("Conv", ["a", "w", "b"], ["y"], pads=[pad, pad], dilations=[dilation])]
        save(folder / f"{name}.onnx", nodes, [("x", shape)],
             {"w": draw(rng, (outputs, shape[1], kernel), shape[1] * kernel), "b": draw(rng, (outputs,))}, "y")
    for name, (shape, kernel, stride, pad) in AVERAGES.items():
        nodes = [helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[kernel] * 2, strides=[stride] * 2,
                                  pads=[pad] * 4)]
        save(folder / f"{name}.onnx", nodes, [("x", shape)], {}, "y")


def resizes(folder):
    import numpy as np
    from onnx import helper
    for name, (shape, factor) in LINEAR_RESIZES.items():
        node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear",
                                coordinate_transformation_mode="half_pixel")
        save(folder / f"{name}.onnx", [node], [("x", shape)],
             {"scales": np.array([1, 1, factor, factor], "float32")}, "y")


def scatters(folder, rng):
    import numpy as np
    from onnx import helper
    for name, size in (("scatternd_slice_16k", 32), ("scatternd_slice_65k", 64)):
        box = [np.arange(1), np.arange(16), np.arange(size - 1), np.arange(size - 1)]
        indices = np.stack(np.meshgrid(*box, indexing="ij"), -1).astype("int64")
        nodes = [helper.make_node("ScatterND", ["x", "i", "u"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
        save(folder / f"{name}.onnx", nodes, [("x", (1, 16, size, size))],
             {"i": indices, "u": draw(rng, indices.shape[:-1])}, "y")
    edges = np.broadcast_to(rng.integers(0, 512, (2048, 1)), (2048, 64)).astype("int64")
    nodes = [helper.make_node("ScatterElements", ["z", "i", "x"], ["s"], axis=0, reduction="add"),
             helper.make_node("Relu", ["s"], ["y"])]
    save(folder / "scatter_elements_gnn_add.onnx", nodes, [("x", (2048, 64))],
         {"i": edges, "z": np.zeros((512, 64), "float32")}, "y")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, metavar="DIR", help="folder of the whole models")
    parser.add_argument("--only", default="", metavar="NAME,...", help="these alone")
    parser.add_argument("peers", nargs="*", metavar="OPTION", help="options of peers.py, behind --")
    options = parser.parse_args()
    import numpy as np
    with tempfile.TemporaryDirectory(prefix="opfuse-slow-") as name:
        folder = pathlib.Path(name)
        rng = np.random.default_rng(0)
        transposed(folder, rng)
        scatters(folder, rng)
        windows(folder, rng)
        resizes(folder)
        paths = sorted(folder.glob("*.onnx"))
        if options.models:
            paths += [options.models / f"{model}.onnx" for model in MODELS]
        wanted = [name for name in options.only.split(",") if name]
        unknown = set(wanted) - {path.stem for path in paths}
        if unknown:
            parser.error(f"not in the list: {', '.join(sorted(unknown))}")
        paths = [path for path in paths if not wanted or path.stem in wanted]
        return subprocess.run([sys.executable, str(ROOT / "peers.py"), *map(str, paths), *options.peers]).returncode


if __name__ == "__main__":
    environment.enter_virtual_environment("slow_list")
    sys.exit(main())
