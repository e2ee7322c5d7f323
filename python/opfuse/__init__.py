"""opfuse: an operator-fusion compiler for neural-network inference.

    model = opfuse.load("resnet50.onnx")
    fused = opfuse.fuse(model)                 # plan and apply; opfuse.plan + opfuse.apply to edit in between
    exe = opfuse.compile(fused)
    scores = exe.run({"input": image})["output"]

The names are those of the C++ API; docs/python.md has the differences.
"""
from __future__ import annotations

import dataclasses
import json
import os
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from . import _core
from ._core import (Context, DeviceArray, Executable, FusionChange, LaunchInfo, Model, Network, NetworkValue, OptimizeCandidate, Optimized,
                    OptimizeSide, PatternSpec, Plan, PlanDiff, PlanEntry, Remark, Target, TensorInfo, default_threads, diff_text,
                    pattern_names, remarks_text)
from ._error import Error
from ._profile import LaunchTime, Profile

__all__ = ["Context", "DeviceArray", "Error", "Executable", "Explanation", "Fused", "FusionChange", "LaunchInfo", "LaunchTime", "Model", "Network", "NetworkValue",
           "OptimizeCandidate", "OptimizeSide", "Optimized", "PatternSpec", "Plan", "PlanDiff", "PlanEntry", "Profile", "Quantized", "Remark",
           "TENSORRT_FUSION_PATTERNS", "Target", "TensorInfo", "apply", "compile", "default_threads", "diff", "diff_text", "explain",
           "fuse", "load", "optimize", "pattern_names", "plan", "quantize", "remarks_text", "transform"]

__version__: str = _core.version()

#: The fusions of the TensorRT catalogue, longest first. Leave one out, or put a PatternSpec of your own in front.
TENSORRT_FUSION_PATTERNS: list[str] = [
    "StemConvBNReLUMaxPool", "ConvBNAddReLU", "ConvBNReLU", "ConvBN", "LinearReLU", "Linear", "LayerNorm", "MHAInProjection",
    "ScaledDotProductAttention", "AdaptiveAvgPool"]

Path = typing.Union[str, "os.PathLike[str]"]
#: A name of the catalogue, a pattern of your own, or the path of a TOML file of patterns.
Pattern = typing.Union[str, PatternSpec, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class Fused:
    """A model with one node per applied group."""

    model: Model
    plan: Plan  #: the plan that was applied
    notes: list[str]  #: what was converted, skipped or split, and why

    def modules(self) -> dict[str, int]:
        """Fused modules by name, {"FusedConvBNReLU": 32, ...}; groups of the rule engine are not counted."""
        return self.model.modules()

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()

    def save(self, path: Path, flatten: bool = False) -> None:
        """Writes ONNX: a function per fused module, or plain operators (flatten)."""
        self.model.save(path, flatten)


@dataclasses.dataclass(frozen=True)
class Quantized:
    """A model with Q/DQ pairs, and how near it is to the one it was made from."""

    model: Model
    report: dict[str, typing.Any]  #: as `opfuse quantize --json` (docs/json.md)
    warnings: list[str]
    _made: typing.Any = dataclasses.field(repr=False, compare=False)

    def save(self, path: Path) -> None:
        """Writes standard ONNX."""
        self.model.save(path, True)

    def save_report(self, path: Path) -> None:
        """To "r.json", or as a page to look at to "r.html"."""
        self._made.save_report(os.fspath(path))


class Explanation(list[Remark]):
    """Remarks; printed, they read as `opfuse explain` does."""

    def __str__(self) -> str:
        return remarks_text(self)


def load(source: typing.Any, *, fixed_inputs: Mapping[str, typing.Any] | None = None,
         limits: Mapping[str, int] | None = None, folder: Path = "", operators: Sequence[Path] = ()) -> Model:
    """Reads an ONNX file, the bytes of one, or an onnx.ModelProto.

    A file must not change while the model lives: weights stay in it. folder: where the external data of bytes or a ModelProto lie.

    fixed_inputs: values of inputs that never change (axes, sizes, repeats); they become constants of the model. limits: on what
    the model may need, by name (docs/cli.md): {"unrolled_nodes": 20000}. operators: of custom domains as expressions,
    "swish(x, b) = x * sigmoid(b * x)", or files of them (docs/custom-operators.md).
    """
    if hasattr(source, "SerializeToString"):
        source = source.SerializeToString()
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _core.load_bytes(bytes(source), dict(fixed_inputs or {}), dict(limits or {}), os.fspath(folder), _texts(operators))
    return Model.load(source, dict(fixed_inputs or {}), dict(limits or {}), _texts(operators))


def plan(model: Model, target: Target | str = "host", *, only: Sequence[str] = (), skip: Sequence[str] = (),
         rules: bool = True, patterns: Sequence[PatternSpec] = (), pattern_files: Sequence[Path] = (),
         dims: Mapping[str, int] | None = None, max_group_nodes: int = 256,
         no_fuse: Sequence[tuple[str, str]] = (), fuse: Sequence[tuple[str, str]] = (), precision: Sequence[str] = (),
         limits: Mapping[str, int] | None = None) -> Plan:
    """Makes a plan; nothing is applied yet.

    only, skip: patterns ("ConvBN"), rules, or one place ("ConvBN@node"). rules: the rule engine for what no named pattern claims.
    patterns, pattern_files: beside the catalogue. dims: sizes that dimensions have from now on; others stay open.
    max_group_nodes: where rules end a group. no_fuse: pairs of nodes to keep apart, in groups and in launches. fuse: pairs that share
    a group although it is predicted slower. precision: of products, "bf16", "tf32" or "f32@node" (docs/precision.md). limits: of planning,
    as in load.
    """
    return _core.plan(model, _target(target), only, skip, rules, patterns, _texts(pattern_files), dict(dims or {}),
                      max_group_nodes, [tuple(pair) for pair in no_fuse], [tuple(pair) for pair in fuse], precision,
                      dict(limits or {}))


def apply(model: Model, plan: Plan) -> Fused:
    """Applies the enabled entries of the plan."""
    fused, notes = _core.apply(model, plan)
    return Fused(fused, plan, notes)


def fuse(model: typing.Any, example: typing.Any = None, patterns: Iterable[Pattern] | None = None, *,
         target: Target | str = "host", rules: bool | None = None) -> Fused:
    """Plans and applies. With patterns, these and no others, and no rules unless asked for; without, everything opfuse has.

    model: a Model, or a torch.nn.Module with an example of its inputs: fuse(module, torch.randn(1, 3, 224, 224)). Patterns may
    stand in the place of the example: fuse(model, TENSORRT_FUSION_PATTERNS).
    """
    if not isinstance(model, Model):
        model = _exported(model, example)
    elif example is not None:
        if patterns is not None:
            raise TypeError("fuse(model, patterns): an example goes with a torch module only")
        patterns = example
    if patterns is None:
        return apply(model, plan(model, target, rules=rules is not False))
    names, own, files = _sorted_out(patterns)
    catalogue = pattern_names()
    names += [spec.name for spec in own]
    names += [name for name in pattern_names(_texts(files)) if name not in catalogue]
    names += ["map", "epilogue", "row"] if rules else []
    if not names:
        return apply(model, plan(model, target, skip=catalogue, rules=False))
    return apply(model, plan(model, target, only=names, rules=bool(rules), patterns=own, pattern_files=files))


def diff(first: Plan, second: Plan) -> PlanDiff:
    """Fusions that the second plan lost and gained, by names of nodes; the order of nodes plays no part.

    Printed, it reads as `opfuse diff` does.
    """
    return _core.diff(first, second)


def explain(model: Model, plan: Plan | None = None, *, node: str = "", passed: bool = True, missed: bool = True,
            target: Target | str = "host", patterns: Sequence[PatternSpec] = (),
            pattern_files: Sequence[Path] = ()) -> Explanation:
    """Why the plan fuses what it fuses, and why not the rest; of one node, everything that was tried there.

    Without a plan, of the plan that opfuse makes. patterns, pattern_files: those the plan was made with.
    """
    if plan is None:
        plan = _core.plan(model, _target(target), patterns=patterns, pattern_files=_texts(pattern_files))
    return Explanation(_core.explain(model, plan, node, passed, missed, patterns, _texts(pattern_files)))


def compile(model: Model | Fused, target: Target | str = "host", *, dims: Mapping[str, int] | None = None,
            specialize: Sequence[Mapping[str, int]] = (), compile_threads: int = 0, cache: bool = True,
            allow_reference: bool = False, fused: bool = True, only: Sequence[str] = (), skip: Sequence[str] = (),
            rules: bool = True, max_group_nodes: int = 256, no_fuse: Sequence[tuple[str, str]] = (),
            fuse: Sequence[tuple[str, str]] = (), precision: Sequence[str] = (), patterns: Sequence[PatternSpec] = (), pattern_files: Sequence[Path] = (),
            exact: bool = False, no_pass: Sequence[str] = (), chains: bool = True, threads: int = 0, measure: bool = False,
            timings: Sequence[Path] = (), algorithm: Sequence[str] = (), no_algorithm: Sequence[str] = (), max_weight_growth: int | None = None,
            workspace: int | None = None, least_memory: bool = False, emit_dir: Path = "", emit_llvm: bool = False, emit_assembly: bool = False,
            emit_cuda: bool = False, dump_dir: Path = "", limits: Mapping[str, int] | None = None,
            fixed_inputs: Mapping[str, typing.Any] | None = None,
            progress: Callable[[str, int, int], object] | None = None) -> Executable:
    """Compiles a model; one that is not fused yet is planned and fused first, unless fused is False.

    dims: values of symbolic dimensions, others stay open. specialize: sizes of open dimensions to compile once more for; a run
    takes the first of these variants that fits its inputs. compile_threads: of the compiler. cache: kernels on disk.
    allow_reference: operators without a kernel run in the interpreter. only, skip, rules, max_group_nodes, no_fuse, fuse, precision, patterns, pattern_files: as for plan.
    exact: direct convolution only, no table-based activations. no_pass: names of
    shaping passes to leave out (docs/internals/shaping.md). chains: False leaves out the joins and the loop over images. threads: of the runs, for the choice of algorithms. measure:
    algorithms, and groups of the rules, by timing the whole model with each. timings: files of measured groups. algorithm, no_algorithm: "f4", "direct@NODE": forced, forbidden.
    max_weight_growth, workspace: bytes, docs/accuracy.md. least_memory: weights of 16 bits stay so, docs/precision.md. dump_dir: the graph after each pass that changes it. limits,
    fixed_inputs: as in load, the latter for models that could be read without them. progress: called with (step, done, total).
    """
    given = dict(locals())
    options = _core.CompileOptions()
    for name in given.keys() - {"model", "target", "dims", "specialize", "pattern_files", "timings", "emit_dir", "dump_dir",
                                "limits", "fixed_inputs", "progress"}:
        setattr(options, name, given[name])
    options.dims, options.limits = dict(dims or {}), dict(limits or {})
    options.specialize = [dict(sizes) for sizes in specialize]
    options.pattern_files, options.timings = _texts(pattern_files), _texts(timings)
    options.emit_dir, options.dump_dir = os.fspath(emit_dir), os.fspath(dump_dir)
    return _core.compile(model.model if isinstance(model, Fused) else model, _target(target), options,
                         dict(fixed_inputs or {}), progress)


Sample = Mapping[str, typing.Any]


#: Samples: dicts of arrays by input name, or a path; quantize() says more.
Samples = typing.Union[Path, Iterable[Sample], Callable[[], Iterator[Sample]]]


def quantize(model: typing.Any, samples: Samples | None = None, plan: Plan | None = None, *,
             example: typing.Any = None, to: str = "", block: int | None = None, compiler: str = "cpu", method: str = "mse", activations: str = "",
             bias_correction: bool = False, equalize: str | float = "off", share_scales: str = "moves", weight_rounding: str = "window-sums",
             pair_sums: str = "", keep_float: Sequence[str] | None = None, skip: Sequence[str] = (), only: Sequence[str] = (),
             min_linear: int | None = None, add_missing: bool = False, compare_samples: int = 8, evaluate: Samples | None = None,
             metric: str | Callable[[int, dict[str, typing.Any]], float] = "", max_drop: str | float = "", lower_bound: bool = False, scales_file: Path = "",
             images: Mapping[str, typing.Any] | None = None, most: int = 0,
             dims: Mapping[str, int] | None = None, limits: Mapping[str, int] | None = None, pattern_files: Sequence[Path] = (),
             threads: int = 0, progress: Callable[[str, int, int], object] | None = None) -> Quantized:
    """Quantises a float model after training, at the points that the plan's modules declare.

    model: a Model, or a torch.nn.Module with an `example` of its inputs, which is exported. samples: dicts of arrays by input
    name, or a path: a folder of .npy, .npz, JPEG or PNG files, or one .npy or .npz with many. Dicts come from a list, from a
    function that returns a new iterator, or from an iterator, of which the first `compare_samples` are kept to compare on and
    which `equalize` cannot go through twice. images: what becomes of pictures: mean and std (of pixel / 255, by channel or one
    number), channels (rgb, bgr), fit (stretch, crop), size ((height, width), where the model leaves it open). most: as many
    samples of a path, evenly spread; 0: all. compiler: whose rules: cpu, cuda, tensorrt, openvino, onnxruntime, any target, or a
    file. equalize: auto, an alpha, off. share_scales: off, moves, adds. weight_rounding: window-sums, nearest. pair_sums: int16 or int32
    instead of the compiler's. method: minmax,
    ema, percentile=99.99, mse, entropy. activations: u8, s8 or by-sign instead of the compiler's. keep_float: presets instead of
    the compiler's (docs/quantization.md). skip, only: modules by pattern, operator, node or "PATTERN@NODE". min_linear: a Linear
    K -> N stays in float where K N / (K + N) is less; the compiler's otherwise. add_missing: pairs for points that a model with Q/DQ lacks.

    to: f16 or bf16 (all of the model in 16-bit floats, inputs and outputs stay f32), int8-weights or int4-weights (codes for the weights of
    MatMul and Gemm alone, by what the samples say of their data) instead of pairs: then samples may be left out, and block (weights along K
    with one scale, a multiple of 8; 0: all), skip, only and min_linear (of weights), evaluate and compare_samples apply.

    compare_samples: to measure agreement with the float model on, for the report; 0: it is not measured. evaluate: samples, as
    `samples`, to measure on that choose nothing; without them those of calibration. metric: sqnr, cosine, top1, a command that is
    called with a folder of outputs, or a function of a sample's index and outputs whose mean it is. max_drop: "1%" or 0.01:
    modules stay in float until the metric of calibration's samples is at most so much lower. lower_bound: the lower end of top1's
    95 % interval is, not its value. scales_file: what calibration finds is kept there and taken up again. progress: called with (step, done, total), total 0 where it is not known.
    """
    if not isinstance(model, Model):
        model = _exported(model, example)
    elif example is not None:
        raise TypeError("an example goes with a torch module only")
    if samples is None and not to:
        raise TypeError("samples are needed, but for `to`")
    request = _core.QuantizeRequest()
    request.to, request.block = to, block
    request.compiler, request.method, request.activations = compiler, method, activations
    request.bias_correction, request.equalize, request.share_scales = bias_correction, str(equalize), share_scales
    request.weight_rounding, request.min_linear, request.add_missing = weight_rounding, min_linear, add_missing
    request.pair_sums = pair_sums
    request.compare_samples, request.threads, request.max_drop = compare_samples, threads, str(max_drop)
    request.lower_bound = lower_bound
    request.skip, request.only = _texts(skip), _texts(only)
    request.keep_float = None if keep_float is None else _texts(keep_float)
    request.scales_file, request.dims, request.limits = os.fspath(scales_file), dict(dims or {}), dict(limits or {})
    request.pattern_files = _texts(pattern_files)
    score = metric if callable(metric) else None
    request.metric = metric if isinstance(metric, str) else ""
    paths = [given for given in (samples, evaluate) if isinstance(given, (str, os.PathLike))]
    if (images or most) and not paths:
        raise TypeError("images and most go with the path of a folder or file")
    judging = None
    if isinstance(evaluate, (str, os.PathLike)):
        request.evaluate_files = _sample_files(os.fspath(evaluate), images or {}, 0)
    elif evaluate is not None:
        judging = _Reader(evaluate, compare_samples)
    rest = (request, judging, len(judging) if judging else 0, score, progress)
    if samples is None:
        if plan is not None or score:
            raise TypeError("a plan and a metric do not apply: nothing gets pairs")
        made = _core.convert(model, request, judging, rest[2], progress)
    elif isinstance(samples, (str, os.PathLike)):
        made = _core.quantize_files(model, plan, _sample_files(os.fspath(samples), images or {}, most), *rest)
    else:
        reader = _Reader(samples, compare_samples)
        if reader.once and request.equalize != "off":
            raise TypeError(_AGAIN)
        made = _core.quantize(model, plan, reader, len(reader), *rest)
    return Quantized(made.model, json.loads(made.report), made.warnings, made)


def _sample_files(path: str, images: Mapping[str, typing.Any], most: int) -> typing.Any:
    files = _core.SampleFiles()
    files.path, files.most = path, most
    for name, value in images.items():
        if name in ("mean", "std"):
            setattr(files, f"image_{name}", [float(v) for v in (value if isinstance(value, Iterable) else [value])])
        elif name in ("channels", "fit"):
            setattr(files, f"image_{name}", value)
        elif name == "size":
            files.image_height, files.image_width = value
        else:
            raise TypeError(f"images have mean, std, channels, fit and size, not '{name}'")
    return files


class _Reader:
    """Sample `index`, from a new iterator where it is not the next one. Of an iterator, which ends for good, the first `kept`."""

    def __init__(self, samples: Iterable[Sample] | Callable[[], Iterator[Sample]], kept: int) -> None:
        self.samples, self.kept, self.first = samples, kept, []  # type: ignore[var-annotated]
        self.once = not callable(samples) and iter(samples) is samples
        self.iterator: Iterator[Sample] = iter(samples) if self.once else iter(())  # type: ignore[arg-type]
        self.position = 0 if self.once else -1

    def __len__(self) -> int:
        """0: not known."""
        return len(self.samples) if isinstance(self.samples, Sequence) else 0

    def __bool__(self) -> bool:
        return True

    def __call__(self, index: int) -> dict[str, typing.Any] | None:
        if self.once and index < min(self.position, self.kept):
            return self.first[index] if index < len(self.first) else None
        if isinstance(self.samples, Sequence):
            return _arrays(self.samples[index], index) if index < len(self.samples) else None
        if index < self.position or not self.once and index != self.position:
            if self.once:
                raise TypeError(_AGAIN)
            self.iterator, self.position = iter(self.samples() if callable(self.samples) else self.samples), 0
        for _ in range(self.position, index):  # a scales file has these
            next(self.iterator, None)
        self.position = index + 1
        sample = next(self.iterator, None)
        if sample is None:
            return None
        arrays = _arrays(sample, index)
        if self.once and index < self.kept:
            self.first.append({name: _copy(array) for name, array in arrays.items()})
        return arrays


_AGAIN = "samples are gone through more than once: give a list, or a function that returns an iterator"


def _arrays(sample: typing.Any, index: int) -> dict[str, typing.Any]:
    if not isinstance(sample, Mapping):
        raise TypeError(f"sample {index} is not a dict of arrays by input name: {type(sample).__name__}")
    return dict(sample)


def _copy(array: typing.Any) -> typing.Any:
    """Callers may fill the same array again."""
    return array.clone() if hasattr(array, "clone") else array.copy() if hasattr(array, "copy") else array


def optimize(model: Model, target: Target | str = "host", *, dims: Mapping[str, int] | None = None,
             inputs: Mapping[str, typing.Any] | None = None, seed: int = 0, seconds: float = 2.0, prove: bool = True,
             threads: int = 0, exact: bool = False, cache: bool = True) -> Optimized:
    """The fastest program that opfuse finds: candidates measured in turns, the best proven and measured against no fusion.

    print(result) is the summary of `opfuse optimize`; result.executable runs. dims: a size for every open dimension. inputs: arrays to
    prove and measure with, others are drawn. seconds: of counted runs of each program. Ctrl-C ends the search.
    """
    options = _core.CompileOptions()
    options.dims, options.threads, options.exact, options.cache = dict(dims or {}), threads, exact, cache
    return _core.optimize(model, _target(target), options, {}, dict(inputs or {}), seed, seconds, prove)


def transform(module: typing.Any, example: typing.Any = None, patterns: Iterable[Pattern] | None = None) -> typing.Any:
    """A torch.nn.Module with its fused groups as children that wrap the original submodules: opfuse.torch.transform.

    example: its inputs; without one, inputs of usual sizes are tried. Patterns may stand in its place: transform(module, patterns).
    """
    from . import torch as _torch
    if patterns is None and isinstance(example, (list, tuple)) and example and all(isinstance(p, (str, PatternSpec, os.PathLike)) for p in example):
        example, patterns = None, example
    return _torch.transform(module, example, patterns)


def _target(target: Target | str) -> Target:
    return Target.named(target) if isinstance(target, str) else target


def _exported(module: typing.Any, example: typing.Any) -> Model:
    if isinstance(module, (str, bytes, os.PathLike)) or hasattr(module, "SerializeToString"):
        raise TypeError(f"a Model or a torch.nn.Module is needed, not {type(module).__name__}: opfuse.load reads one")
    from . import torch as _torch
    return _torch.model_of(module, example)


def _texts(paths: Iterable[Path]) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        raise TypeError(f"a list is needed, not {os.fspath(paths)!r} alone")
    return [os.fspath(path) for path in paths]


def _sorted_out(patterns: Iterable[Pattern]) -> tuple[list[str], list[PatternSpec], list[Path]]:
    names: list[str] = []
    own: list[PatternSpec] = []
    files: list[Path] = []
    for pattern in patterns:
        if isinstance(pattern, PatternSpec):
            own.append(pattern)
        elif isinstance(pattern, str) and not pattern.endswith(".toml"):
            names.append(pattern)
        else:
            files.append(pattern)
    return names, own, files
