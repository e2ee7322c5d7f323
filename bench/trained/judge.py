"""What a quantised file loses against its float file, by the model's own measure. Outputs: lists of arrays by sample."""
import numpy


def sqnr(want, got, output=0):
    signal = sum(float((w[output].astype(numpy.float64) ** 2).sum()) for w in want)
    noise = sum(float(((w[output].astype(numpy.float64) - g[output]) ** 2).sum()) for w, g in zip(want, got))
    return 10 * float(numpy.log10(signal / noise)) if noise > 0 else 200.0


def wilson(hits, count, z=1.96):
    """Lower and upper 95 % bound of a share."""
    share, square = hits / count, z * z / count
    middle, half = share + square / 2, z * ((share * (1 - share) + square / 4) / count) ** 0.5
    return (middle - half) / (1 + square), (middle + half) / (1 + square)


def classification(want, got, known):
    label = numpy.array([k["label"] for k in known])
    a, b = (numpy.array([int(o[0].argmax()) for o in outputs]) for outputs in (want, got))
    pictures = sorted({k["picture"] for k in known})
    by_picture = numpy.array([[(a == b)[[k["picture"] == p for k in known]].mean()] for p in pictures])
    random = numpy.random.default_rng(1)
    means = sorted(by_picture[random.integers(0, len(pictures), len(pictures))].mean() for _ in range(2000))
    flips = int((a == label).sum() - (b == label).sum())
    return {"float": float((a == label).mean()), "right": float((b == label).mean()), "agreement": float((a == b).mean()),
            "interval": [float(means[50]), float(means[1949])], "net_flips": flips, "sqnr": sqnr(want, got),
            "good": bool((a == b).mean() >= 0.97 and flips <= 5),
            "text": f"agreement {(a == b).mean():.1%} [{means[50]:.1%}, {means[1949]:.1%}], right {(b == label).mean():.1%} of {(a == label).mean():.1%}, "
                    f"net flips {flips} of {len(a)}, SQNR {sqnr(want, got):.1f} dB"}


KEPT = 200  # samples whose probabilities are kept: SQNR is theirs


def kept(name, outputs, index):
    """What judging needs of a sample's outputs: of words the letters, and some probabilities."""
    if name != "ocr_recognition":
        return outputs
    return [outputs[0] if index < KEPT else None, outputs[0][0].argmax(-1).astype(numpy.int16)]


def decoded(best, letters):
    word, last = "", 0
    for index in best:
        if index != last and index:
            word += letters[index]
        last = index
    return word.replace(" ", "")  # as PaddleOCR's own metric


def recognition(want, got, known, letters):
    a, b = ([decoded(o[1], letters) == k["word"] for o, k in zip(outputs, known)] for outputs in (want, got))
    low, high = wilson(sum(b), len(b))
    want, got = want[:KEPT], got[:KEPT]
    return {"float": sum(a) / len(a), "right": sum(b) / len(b), "interval": [low, high], "sqnr": sqnr(want, got), "good": low >= 0.935,
            "text": f"{sum(b) / len(b):.1%} [{low:.1%}, {high:.1%}] of words right (float {sum(a) / len(a):.1%}), SQNR {sqnr(want, got):.1f} dB"}


def ranks(x):
    out = numpy.empty(len(x))
    out[x.argsort(kind="stable")] = numpy.arange(len(x))
    return out


def sentences(want, got, known):
    a, b = (numpy.stack([o[0][0] for o in outputs]).astype(numpy.float64) for outputs in (want, got))
    cosine = (a * b).sum(1) / numpy.sqrt((a * a).sum(1) * (b * b).sum(1))
    upper = numpy.triu_indices(len(a), 1)
    rank = float(numpy.corrcoef(ranks((a @ a.T)[upper]), ranks((b @ b.T)[upper]))[0, 1])
    return {"cosine": float(cosine.mean()), "least_cosine": float(cosine.min()), "rank": rank, "sqnr": sqnr(want, got),
            "good": bool(cosine.mean() >= 0.995 and rank >= 0.99),
            "text": f"cosine {cosine.mean():.4f} (least {cosine.min():.4f}), rank correlation {rank:.4f}, SQNR {sqnr(want, got):.1f} dB"}


def overlap(a, b):
    x = min(a[2], b[2]) - max(a[0], b[0])
    y = min(a[3], b[3]) - max(a[1], b[1])
    both = max(x, 0) * max(y, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def boxes_agree(want, got, boxes_of):
    """Twice the matched boxes (IoU above a half) of all boxes of both, and the mean IoU of the matched ones."""
    matched, count, total = 0, 0, []
    for w, g in zip(want, got):
        left, right = boxes_of(w), boxes_of(g)
        count += len(left) + len(right)
        for box in left:
            best = max(right, key=lambda other: overlap(box, other), default=None)
            if best is not None and overlap(box, best) > 0.5:
                matched, right = matched + 2, [other for other in right if other is not best]
                total.append(overlap(box, best))
    share = matched / count if count else 1.0
    mean = float(numpy.mean(total)) if total else 0.0
    return {"boxes": count, "agreement": share, "iou": mean, "sqnr": sqnr(want, got), "good": share >= 0.99,
            "text": f"agreement {share:.1%} of {count} boxes, mean IoU {mean:.3f}, SQNR {sqnr(want, got):.1f} dB"}


def text_boxes(outputs):
    from scipy import ndimage
    labels, _ = ndimage.label(outputs[0][0, 0] > 0.3)
    found = [(x.start, y.start, x.stop, y.stop) for y, x in ndimage.find_objects(labels)]
    return [box for box in found if (box[2] - box[0]) * (box[3] - box[1]) >= 20]


def face_boxes(outputs):
    heat, scale, offset = outputs[0][0, 0], outputs[1][0], outputs[2][0]
    kept = []
    for y, x in sorted(zip(*numpy.nonzero(heat > 0.5)), key=lambda at: -heat[at]):
        height, width = numpy.exp(scale[:, y, x]) * 4
        middle_y, middle_x = (y + offset[0, y, x] + 0.5) * 4, (x + offset[1, y, x] + 0.5) * 4
        box = (middle_x - width / 2, middle_y - height / 2, middle_x + width / 2, middle_y + height / 2)
        if all(overlap(box, other) < 0.3 for other in kept):
            kept.append(box)
    return kept


def labels(want, got, known):
    a, b = ([int(o[0].argmax()) for o in outputs] for outputs in (want, got))
    same = sum(x == y for x, y in zip(a, b))
    return {"agreement": same / len(a), "sqnr": sqnr(want, got), "good": same >= 0.99 * len(a),
            "text": f"agreement {same / len(a):.1%} of {len(a)} files, SQNR {sqnr(want, got):.1f} dB"}


def judge(name, model, want, got, known):
    if name == "efficientnet_lite0":
        return classification(want, got, known)
    if name == "ocr_recognition":
        [letters] = [entry.value for entry in model.metadata_props if entry.key == "character"]
        return recognition(want, got, known, ["", *letters.splitlines(), " "])
    if name == "minilm":
        return sentences(want, got, known)
    if name == "magika":
        return labels(want, got, known)
    return boxes_agree(want, got, text_boxes if name == "ocr_detection" else face_boxes)


def share_of_codes(path):
    """Multiply-adds of Conv, MatMul and Gemm both of whose factors are dequantised codes, of all; None where shapes stay open."""
    import onnx
    model = onnx.shape_inference.infer_shapes(onnx.load(str(path)), data_prop=True)
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*model.graph.value_info, *model.graph.input, *model.graph.output]}
    shapes.update({t.name: list(t.dims) for t in model.graph.initializer})
    made = {output: node for node in model.graph.node for output in node.output}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            shapes[node.output[0]] = list(node.attribute[0].t.dims)
        elif node.op_type in ("DequantizeLinear", "QuantizeLinear"):
            shapes.setdefault(node.output[0], shapes.get(node.input[0]))

    def coded(name):
        while name in made and made[name].op_type in ("Transpose", "Reshape", "Identity"):
            name = made[name].input[0]
        return name in made and made[name].op_type == "DequantizeLinear"

    total = codes = 0
    for node in model.graph.node:
        if node.op_type not in ("Conv", "MatMul", "Gemm", "ConvTranspose"):
            continue
        x, w, y = (shapes.get(name) for name in (node.input[0], node.input[1], node.output[0]))
        if not x or not w or not y or 0 in [*x, *w, *y]:
            return None
        if node.op_type == "Conv":
            work = numpy.prod(y) * numpy.prod(w[1:])
        elif node.op_type == "ConvTranspose":
            work = numpy.prod(x) * numpy.prod(w[1:])
        else:
            trans = any(a.name == "transA" and a.i for a in node.attribute)
            work = numpy.prod(y) * (x[0] if trans else x[-1])
        total += int(work)
        codes += int(work) if coded(node.input[0]) and coded(node.input[1]) else 0
    return codes / total if total else None
