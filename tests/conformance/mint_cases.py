#!/usr/bin/env python3
"""Writes the backend cases of the installed Python package onnx as folders.

    mint_cases.py FOLDER

FOLDER/GROUP/test_x/ has model.onnx, test_data_set_N/input_I.pb and output_I.pb, `tolerance` (the case's own rtol and atol)
and `operator` (what the table counts it under). Groups: node, simple, pytorch-converted, pytorch-operator, light.
"""
import pathlib
import shutil
import sys

import numpy
import onnx
from onnx.backend.test import loader
from onnx.backend.test.runner import Runner

GROUPS = ["simple", "pytorch-converted", "pytorch-operator"]


def proto_of(value, name):
    if isinstance(value, onnx.TensorProto):
        return value
    if isinstance(value, (list, dict)) or value is None:
        return None  # sequences, maps, optionals: such cases are refused before their data is read
    return onnx.numpy_helper.from_array(numpy.asarray(value), name)


def write_set(folder, inputs, outputs, model):
    folder.mkdir(parents=True)
    for stem, values, infos in (("input", inputs, model.graph.input), ("output", outputs, model.graph.output)):
        for i, value in enumerate(values):
            name = infos[i].name if i < len(infos) else ""
            proto = proto_of(value, name)
            if proto is None:
                return
            (folder / f"{stem}_{i}.pb").write_bytes(proto.SerializeToString())


def write_case(folder, model, sets, operator, rtol=1e-3, atol=1e-7):
    folder.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    (folder / "tolerance").write_text(f"{rtol} {atol}\n")
    (folder / "operator").write_text(operator + "\n")
    for number, (inputs, outputs) in enumerate(sets):
        write_set(folder / f"test_data_set_{number}", inputs, outputs, model)


def node_cases(root):
    cases = {case.name: case for case in loader.load_node_model_tests()}
    for name, case in cases.items():
        base = cases.get(name.split("_expanded")[0], case)  # the operator, also where its function body is the model
        operator = base.model.graph.node[0].op_type if base.model.graph.node else "none"
        write_case(root / "node" / name, case.model, case.data_sets, operator, case.rtol, case.atol)


def file_cases(root):
    for group in GROUPS:
        for case in loader.load_model_tests(kind=group):
            folder = root / group / case.name
            shutil.copytree(case.model_dir, folder)
            (folder / "tolerance").write_text(f"{case.rtol} {case.atol}\n")
            (folder / "operator").write_text(f"({group})\n")


def light_cases(root):
    data = pathlib.Path(loader.DATA_DIR) / "light"
    tolerances = {case.model_name: (case.rtol, case.atol) for case in loader.load_model_tests(kind="real")}
    for path in sorted(data.glob("*.onnx")):
        model, name = onnx.load(path), path.stem.removeprefix("light_")
        held = {i.name for i in model.graph.initializer}
        inputs = [Runner.generate_dummy_data(x, seed=0, name=name, random=False) for x in model.graph.input if x.name not in held]
        output = onnx.load_tensor(str(path.with_suffix("")) + "_output_0.pb")
        write_case(root / "light" / name, model, [(inputs, [output])], "(light)", *tolerances[name])


def main():
    root = pathlib.Path(sys.argv[1])
    shutil.rmtree(root, ignore_errors=True)
    node_cases(root)
    file_cases(root)
    light_cases(root)
    (root / "version").write_text(onnx.__version__ + "\n")
    print(f"{sum(1 for _ in root.glob('*/*/model.onnx'))} cases of onnx {onnx.__version__} in {root}")


if __name__ == "__main__":
    main()
