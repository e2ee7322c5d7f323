"""What the results of `opfuse run` say, beside ONNX Runtime's: python read_results.py FOLDER. Exit 1 where the two disagree.

FOLDER: where make_models.py wrote, with the arrays of `opfuse run --output-dir` in it.
"""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

LABELS = {251: "dalmatian"}  # of the classes of ImageNet, that of the photograph


def peer(folder, model, array):
    session = onnxruntime.InferenceSession(str(folder / model), providers=["CPUExecutionProvider"])
    [y] = session.run(None, {"x": np.load(folder / array)})
    return y


def ours(folder, shape):
    """The one array that has the shape of the other's result."""
    return next(y for y in map(np.load, sorted(folder.glob("*.npy"))) if y.shape == shape)


def text_of(scores, model):
    """CTC: the most likely character of each column, repetitions and blanks left out."""
    [entry] = [p for p in onnx.load(model, load_external_data=False).metadata_props if p.key == "character"]
    characters = ["", *entry.value.splitlines(), " "]
    best = scores[0].argmax(axis=1)
    return "".join(characters[c] for i, c in enumerate(best) if i == 0 or c != best[i - 1]).strip()


def label_of(scores, _):
    best = int(scores[0].argmax())
    return f"class {best} ({LABELS.get(best, 'not the one expected')})"


def main():
    folder, same = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."), True
    for title, model, array, results, meaning in (("photo", "efficientnet_lite0.onnx", "photo.npy", "photo", label_of),
                                                  ("line", "ocr.onnx", "line.npy", "line", text_of)):
        want = peer(folder, model, array)
        got = ours(folder / results, want.shape)
        error = float(np.abs(got - want).max() / np.abs(want).max())
        answers = [meaning(scores, folder / model) for scores in (got, want)]
        print(f"{title}: opfuse says {answers[0]!r}, ONNX Runtime {answers[1]!r}; largest difference {error:.1e} of the largest value")
        same &= answers[0] == answers[1] and error <= 1e-4
    return 0 if same else 1


sys.exit(main())
