"""Inputs with structure, the same for every contestant.

White noise makes a deep net with random weights answer almost the same to every input, and then comparing outputs proves
nothing. Images here are a few low frequencies of random direction and contrast plus some noise. Integers that index a table
(through Gather) stay inside it; every other integer input is a 0/1 mask that starts with ones.
"""
import numpy as np
import onnx

FLOATS = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.DOUBLE: np.float64, onnx.TensorProto.FLOAT16: np.float16}
INTEGERS = {onnx.TensorProto.INT64: np.int64, onnx.TensorProto.INT32: np.int32, onnx.TensorProto.INT8: np.int8,
            onnx.TensorProto.UINT8: np.uint8, onnx.TensorProto.BOOL: np.bool_}
PASSES_INDICES_ON = {"Cast", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Identity", "Expand", "Slice"}


class UnknownDimension(Exception):
    pass


def graph_inputs(model):
    constants = {i.name for i in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def concrete_shape(value, batch, dims):
    """The shape of a graph input: --dim decides, then --batch for the leading dimension of any input with several."""
    shape = []
    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
        if dim.dim_param in dims:
            shape.append(dims[dim.dim_param])
        elif axis == 0 and (not dim.dim_value or dim.dim_value == 1):
            shape.append(batch)
        elif dim.dim_value:
            shape.append(dim.dim_value)
        else:
            raise UnknownDimension(f"input {value.name!r} has the dimension {dim.dim_param or '?'!r}: "
                                   f"add --dim {dim.dim_param or 'NAME'}=SIZE")
    return tuple(shape)


def with_shapes(model, shapes):
    """The model with its inputs' shapes fixed, so that every contestant compiles the same one. None: already so."""
    wanted = {name: list(shape) for name, shape in shapes.items()}
    have = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in graph_inputs(model)}
    if wanted == have:
        return None
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in graph_inputs(fixed):
        for dim, size in zip(value.type.tensor_type.shape.dim, wanted[value.name]):
            dim.dim_value = size
    del fixed.graph.value_info[:]
    for value in fixed.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    return onnx.shape_inference.infer_shapes(fixed)


def table_size(model, name):
    """Rows of the smallest table that the integer input `name` indexes, or None."""
    rows = {i.name: list(i.dims) for i in model.graph.initializer}
    carriers, sizes = {name}, []
    for node in model.graph.node:
        if node.op_type == "Gather" and node.input[1] in carriers and node.input[0] in rows:
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            sizes.append(rows[node.input[0]][axis])
        if node.op_type in PASSES_INDICES_ON and node.input[0] in carriers:
            carriers.update(node.output)
    return min(sizes, default=None)


def image_like(rng, shape):
    """Low frequencies of random direction, amplitude and phase over the last two axes, plus noise."""
    values = 0.15 * rng.normal(size=shape)
    height, width = shape[-2:] if len(shape) >= 2 else (1, shape[-1] if shape else 1)
    y, x = np.mgrid[0:height, 0:width] / max(height, width, 1)
    planes = values.reshape(-1, height, width)
    for plane in planes:
        for _ in range(4):
            angle, phase, frequency = rng.uniform(0, 2 * np.pi, 2).tolist() + [rng.uniform(0.5, 6)]
            wave = np.sin(2 * np.pi * frequency * (x * np.cos(angle) + y * np.sin(angle)) + phase)
            plane += rng.uniform(0.2, 1.0) * wave
    return planes.reshape(shape)


def draw(model, shapes, seed):
    """One array per graph input."""
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in graph_inputs(model):
        shape, kind = shapes[value.name], value.type.tensor_type.elem_type
        if kind in FLOATS:
            array = image_like(rng, shape).astype(FLOATS[kind])
        elif kind in INTEGERS:
            rows = table_size(model, value.name)
            if rows:
                array = rng.integers(0, rows, shape)
            else:
                length = rng.integers(1, shape[-1] + 1, shape[:-1] + (1,)) if shape else 1
                array = np.broadcast_to(np.arange(shape[-1] if shape else 1) < length, shape)
            array = array.astype(INTEGERS[kind])
        else:
            raise ValueError(f"input {value.name!r} has an element type that this runner cannot draw")
        feeds[value.name] = np.ascontiguousarray(array)
    return feeds
