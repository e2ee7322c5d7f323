"""opfuse quantize on a small net: the lines of docs/quantization.md, other runtimes, bad samples."""
import base64
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import unittest
import zipfile
import zlib

from harness import MODELS, CliTest, read_npy, write_npy

SMALL = MODELS / "small_net.fir"
SIZES = (1, 3, 16, 16)
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/quantization.md"
# Python with onnx, numpy, onnxruntime, openvino
PYTHON = os.environ.get("OPFUSE_ONNX_PYTHON", "")

RUNTIMES = """
import json, sys
import numpy
import onnx
model, out = sys.argv[1:3]
onnx.checker.check_model(onnx.load(model), full_check=True)
x = {"x": numpy.load(sys.argv[3])}
results = {}
try:
    import onnxruntime
    options = onnxruntime.SessionOptions(); options.log_severity_level = 3
    results["onnxruntime"] = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, x)[0].tolist()
except ImportError:
    pass
try:
    import openvino
    results["openvino"] = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0].tolist()
except ImportError:
    pass
json.dump(results, open(out, "w"))
"""


# 16 x 16, white beside black
JPEG = ("/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsLEBYQERMUFRUVDA8XGBYUGBIUFRT/"
        "wAALCAAQABABAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEI"
        "I0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ip"
        "qrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/AP1Fr+bWv6Sq/m1r/9k=")


def png(width, height, seed):
    """RGB, full range."""
    rows = b"".join(b"\0" + bytes((x * 255 // (width - 1) * (1 + (y + seed) % 2) + 85 * c * (x % 2)) % 256 for x in range(width) for c in range(3))
                    for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    profile = chunk(b"iCCP", b"odd\0\0" + zlib.compress(b"no profile")) if seed == 3 else b""  # libpng warns
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + profile
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def values(seed, sizes=SIZES):
    return [math.sin(1.7 * seed + 0.37 * i) + 0.3 * math.cos(0.011 * i * (seed + 1)) for i in range(math.prod(sizes))]


class Quantize(CliTest):
    def samples(self, name, seeds):
        folder = self.folder / name
        folder.mkdir()
        for seed in seeds:
            write_npy(folder / f"{seed:03}.npy", SIZES, values(seed))
        return folder

    def quantized(self, *flags):
        folder = self.folder / "calibration"
        if not folder.exists():
            self.samples("calibration", range(8))
        out = self.folder / "q.onnx"
        result = self.ok("quantize", SMALL, "--calibrate", folder, "-o", out, "--min-linear", "0", *flags)
        return out, result

    def test_the_page_s_lines_run(self):
        [lines] = re.findall(r"test_quantize.py runs these lines -->\n```sh\n(.*?)```", PAGE.read_text(), re.S)
        self.samples("calibration", range(6))
        self.samples("heldout", range(100, 103))
        # the page's model, of this test's size
        self.ok("fuse", SMALL, "-o", self.folder / "model.onnx", "--flatten")
        for line in lines.splitlines():
            words = line.split("#")[0].split()
            self.assertEqual(words[0], "opfuse")
            self.ok(*words[1:], cwd=self.folder)
        for name in ("model.int8.onnx", "report.html", "model.opf"):
            self.assertGreater((self.folder / name).stat().st_size, 1000, name)

    def test_report_says_what_was_done(self):
        _, result = self.quantized("--json", "--bias-correction")
        report = result.json
        self.assertEqual(report["schema"], "opfuse.quantize/1")
        self.assertEqual((report["for"], report["method"], report["calibrated_with"]), ("cpu", "mse", 8))
        self.assertEqual([row["tensor"] for row in report["tensors"]], ["x", "r1", "p"])
        self.assertEqual([row["code"] for row in report["float"]], ["preset"])
        self.assertEqual(len(report["products"]), 3)
        self.assertGreater(report["agreement"]["outputs"][0]["sqnr"], 20)
        self.assertEqual(len(report["agreement"]["layers"]), 3)
        page = self.folder / "r.html"
        self.quantized("--report", page)
        self.assertIn("lost here", page.read_text())
        self.assertNotIn("http", page.read_text())

    def test_dry_run_lists_places_and_reasons(self):
        text = self.ok("quantize", SMALL, "--dry-run").out
        self.assertIn("preset 'global_pool'", text)
        self.assertIn("3 tensors", text)
        self.assertIn("% of multiply-adds", text)
        result = self.ok("quantize", SMALL, "--dry-run", "-o", self.folder / "dry.onnx")
        self.assertIn("a dry run writes nothing", result.err)
        self.assertFalse((self.folder / "dry.onnx").exists())
        self.assertEqual(self.ok("quantize", SMALL, "--dry-run", "--keep-float", "none", "--json").json["points"], 6)

    def test_same_samples_same_bytes(self):
        first = self.quantized("--threads", "1")[0].read_bytes()
        self.assertEqual(first, self.quantized("--threads", "2")[0].read_bytes())

    def test_one_npz_holds_what_a_folder_does(self):
        first = self.quantized()[0].read_bytes()
        whole = [v for seed in range(8) for v in values(seed)]
        write_npy(self.folder / "x.npy", (8, *SIZES[1:]), whole)
        with zipfile.ZipFile(self.folder / "all.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(self.folder / "x.npy", "x.npy")
        for path in ("all.npz", "x.npy"):
            out = self.folder / f"{path}.onnx"
            self.ok("quantize", SMALL, "--calibrate", self.folder / path, "-o", out, "--min-linear", "0")
            self.assertEqual(out.read_bytes(), first, path)

    def test_compare_names_the_layer_where_agreement_is_lost(self):
        model, _ = self.quantized("--method", "percentile=60")
        data = ("--against", SMALL, "--data", self.folder / "calibration")
        result = self.fails(1, "compare", model, *data, "--least-sqnr", "30")
        self.assertIn("lost     first below 30 dB: 'x'", result.out)
        self.assertIn("FAILED", result.out)
        good, _ = self.quantized()
        report = self.ok("compare", good, *data, "--least-sqnr", "15", "--json").json
        self.assertEqual((report["schema"], report["ok"]), ("opfuse.compare-layers/1", True))
        self.fails(2, "compare", good, "--data", self.folder, says=["--against"])
        self.fails(2, "compare", good, *data, "--unfused", says=["--unfused"])

    def test_kernels_take_the_codes(self):
        model, _ = self.quantized()
        text = self.ok("explain", model, "--target", "cpu:avx512-vnni").out
        self.assertEqual(re.findall(r"PRECISION *(\w+)", text), ["int8"] * 3 + ["f32"])
        self.assertIn("AdaptiveAvgPool@/pool [preset]: quantised for cpu, preset 'global_pool'", text)
        model, _ = self.quantized("--keep-float", "none")
        self.ok("compare", model, "--dim", "batch=2")

    def test_explain_says_in_whom_a_module_is_int8(self):
        model, _ = self.quantized("--for", "openvino", "--activations", "u8")
        lines = [line for line in self.ok("explain", model).out.splitlines() if line.startswith("MODULE")]
        self.assertEqual(len(lines), 3)
        for line in lines:
            self.assertRegex(line, r": int8 in [a-z, ]*openvino;")
            self.assertIn("tensorrt, tensorrt-smart [unsigned_codes", line)
            self.assertIn("cuda [dequantized", line)
        self.assertIn("onnxruntime [no_result_pair", lines[1])
        rows = self.ok("explain", model, "--json").json["quantised_modules"]
        self.assertEqual([row["node"] for row in rows], ["/stem/conv", "/block/conv", "/head"])
        self.assertIn("openvino", rows[0]["int8_in"])
        self.assertNotIn("MODULE", self.ok("explain", SMALL, "--dim", "batch=1").out)

    def test_codes_by_sign(self):
        flags = ("--calibrate", "random", "--activations", "by-sign", "-o", self.folder / "signs.onnx")
        report = self.ok("quantize", SMALL, *flags, "--for", "openvino", "--json").json
        self.assertEqual(report["activations"], "by_sign")
        self.fails(2, "quantize", SMALL, *flags, "--for", "cuda", says=["zero point 0 only"])

    def test_a_metric_judges_both_models(self):
        heldout = self.samples("heldout", range(100, 104))
        command = self.folder / "count.py"
        command.write_text("import pathlib, sys, zipfile\nfiles = sorted(pathlib.Path(sys.argv[1]).glob('*.npz'))\n"
                           "assert all(zipfile.ZipFile(file).namelist() == ['y.npy'] for file in files)\nprint('files')\nprint(len(files) / 2)\n")
        given = ("--evaluate", heldout, "--json", "--force")
        _, result = self.quantized(*given, "--metric", f"python3 {command}", "--weights", "beside")
        self.assertEqual(result.json["metric"], {"name": f"python3 {command}", "float": 2.0, "codes": 2.0})
        self.assertTrue((self.folder / "q.onnx.data").exists())
        _, result = self.quantized(*given, "--metric", "cosine")
        self.assertEqual(result.json["metric"]["float"], 1)
        self.assertGreater(result.json["metric"]["codes"], 0.99)
        bad = ("quantize", SMALL, "--calibrate", heldout, "-o", self.folder / "bad.onnx")
        self.fails(2, *bad, "--metric", "false", says=["the metric \"false\" exits with 1", "folder of .npz"])
        noisy = self.folder / "noisy.py"
        noisy.write_text("print('x' * 1000 + '\\n' * 3000, flush=True)\nprint(0.25)\n")
        _, result = self.quantized("--json", "--force", "--metric", f"python3 {noisy}")
        self.assertEqual(result.json["metric"]["codes"], 0.25)
        for printed in ("", "nan #", "inf #"):
            self.fails(2, *bad, "--metric", f"echo {printed}", says=["not a number"])
        self.fails(2, *bad, "--metric", "top1", "--compare-samples", "0", says=["--compare-samples"])
        self.assertFalse((self.folder / "bad.onnx").exists())

    def test_max_drop_leaves_modules_in_float(self):
        page = self.folder / "r.html"
        # the share that the outputs keep of the first ones seen, which the whole quantised model made last: the float model is asked first
        command = self.folder / "spread.py"
        command.write_text("import pathlib, sys, zipfile, struct\n"
                           "data = [zipfile.ZipFile(f).read('y.npy')[-40:] for f in sorted(pathlib.Path(sys.argv[1]).glob('*.npz'))]\n"
                           "seen = pathlib.Path(sys.argv[0] + '.seen')\n"
                           "now = [v for d in data for v in struct.unpack('<10f', d)]\n"
                           "if not seen.exists(): seen.write_text(repr(now))\n"
                           "was = eval(seen.read_text())\n"
                           "print(1 - sum(abs(a - b) for a, b in zip(now, was)) / sum(map(abs, was)))\n")
        given = ("--metric", f"python3 {command}", "--compare-samples", "3", "--json", "--force", "--keep-float", "none")
        _, result = self.quantized(*given, "--max-drop", "50%")
        self.assertEqual([point["left"] for point in result.json["search"]["frontier"]], [0])
        loss = result.json["search"]["frontier"][0]["drop"]
        self.assertGreater(loss, 0)
        _, result = self.quantized(*given, "--max-drop", str(loss / 2), "--report", page)
        search = result.json["search"]
        self.assertLessEqual(search["frontier"][-1]["drop"], loss / 2)
        self.assertEqual(search["chosen"], len(search["frontier"]) - 1)
        left = search["frontier"][-1]["left"]
        self.assertGreater(left, 0)
        self.assertEqual({row["group"] for row in result.json["float"]}, {row["group"] for row in search["sensitivity"][:left]})
        self.assertIn("<polyline", page.read_text())
        self.fails(2, "quantize", SMALL, "--calibrate", self.folder / "calibration", "--max-drop", "1%", says=["--metric"])

    def test_to_writes_16_bit_floats(self):
        heldout = self.samples("heldout", range(100, 102))
        out = self.folder / "half.onnx"
        for to, least in (("f16", 55), ("bf16", 35)):
            report = self.ok("quantize", SMALL, "--to", to, "-o", out, "--evaluate", heldout, "--json").json
            self.assertEqual((report["schema"], report["to"], report["kept_f32"]), ("opfuse.convert/1", to, []))
            self.assertEqual(report["constant_bytes"][0], 2 * report["constant_bytes"][1])
            self.assertGreater(report["agreement"]["outputs"][0]["sqnr"], least)
            if PYTHON:
                write_npy(self.folder / "in.npy", SIZES, values(50))
                (self.folder / "runtimes.py").write_text(RUNTIMES)  # onnx's checker, full; bf16 runs in OpenVINO alone
                results = self.folder / "results.json"
                done = subprocess.run([PYTHON, self.folder / "runtimes.py", out, results, self.folder / "in.npy"], capture_output=True, text=True)
                self.assertTrue(done.returncode == 0 or (to == "bf16" and "NOT_IMPLEMENTED" in done.stderr.upper()), done.stderr[-600:])
        self.fails(2, "quantize", SMALL, "--to", "f16", "--calibrate", heldout, says=["--calibrate"])
        model, _ = self.quantized()
        self.fails(2, "quantize", model, "--to", "f16", "-o", out, says=["Q/DQ"])

    def test_to_codes_weights_alone(self):
        heldout = self.samples("heldout", range(100, 102))
        out, report = self.folder / "weights.onnx", self.folder / "weights.json"
        small = ("quantize", SMALL, "--min-linear", "4")
        for to, block, least in (("int8-weights", 0, 40), ("int8-weights", 8, 40), ("int4-weights", 8, 15), ("int4-weights", 32, 15)):
            blocks = ("--block", str(block)) if block == 8 else ()  # the others are defaults
            made = self.ok(*small, "--to", to, *blocks, "-o", out, "--evaluate", heldout, "--json", "--report", report).json
            self.assertEqual(made["products"], json.loads(report.read_text())["products"])
            self.assertEqual((made["schema"], made["block"]), ("opfuse.code-weights/1", block))
            self.assertEqual([row["node"] for row in made["products"]], ["/head"])
            self.assertEqual(made["products"][0]["shape"], [24, 10])
            self.assertEqual([row["code"] for row in made["float"]], ["convolution"] * 2)
            self.assertGreater(made["agreement"]["outputs"][0]["sqnr"], least)
            if PYTHON and block != 32:  # OpenVINO takes whole blocks alone, and rounds data to 8 bits by itself
                write_npy(self.folder / "in.npy", SIZES, values(50))
                (self.folder / "runtimes.py").write_text(RUNTIMES)
                results = self.folder / "results.json"
                subprocess.run([PYTHON, self.folder / "runtimes.py", out, results, self.folder / "in.npy"], check=True, capture_output=True)
                self.ok("run", out, "--input", f"x={self.folder / 'in.npy'}", "--output", self.folder / "out.npy")
                own = read_npy(self.folder / "out.npy")[1]
                for name, rows in json.loads(results.read_text()).items():
                    for a, b in zip(own, rows[0]):
                        self.assertAlmostEqual(a, b, delta=(1e-5 if name == "onnxruntime" else 2e-2) * max(map(abs, own)), msg=name)
        text = self.ok(*small, "--to", "int4-weights").out
        self.assertRegex(text, r"/head +24 +10 +\d+\.\d")
        self.assertIn("2 convolution: /stem/conv", text)
        self.fails(2, "quantize", SMALL, "--to", "int4-weights", says=["no weights become codes", "below 32 [small_linear]"])
        self.fails(2, *small, "--to", "int4-weights", "--block", "12", says=["multiple of 8"])
        made = self.ok(*small, "--to", "int4-weights", "--calibrate", heldout, "--json").json  # of 24 x 10 weights: clips alone
        self.assertEqual((made["calibrated_with"], made["products"][0]["folded"]), (str(heldout), False))
        self.fails(2, *small, "--to", "int4-weights", "--method", "minmax", says=["--method does not apply"])
        self.fails(2, *small, "--to", "int4-weights", "--calibrate", heldout, "--seed", "3", says=["--seed does not apply"])
        self.fails(2, *small, "--to", "int4-weights", "--skip", "/heed", says=["/head"])
        self.fails(2, *small, "--to", "int4-weights", "--skip", "/head", says=["left out by --skip"])
        self.fails(2, "quantize", SMALL, "--to", "f16", "--block", "8", says=["--block"])

    def test_channels_and_shared_scales_are_said(self):
        _, result = self.quantized("--share-scales", "adds", "--equalize", "0.5", "--json", "--force")
        report = result.json
        self.assertEqual(report["equalize"], "0.5")
        self.assertEqual([row["across"] for row in report["shared_scales"]], [])  # r2's only reader is the pool, in float
        _, result = self.quantized("--share-scales", "adds", "--keep-float", "none", "--force")
        self.assertRegex(result.out, r"shared +\d tensors have one scale.*costs -?\d")
        self.fails(2, "quantize", SMALL, "--calibrate", "random", "--equalize", "2", says=["alpha from 0 to 1"])

    def test_a_quantised_model_keeps_its_scales(self):
        model, _ = self.quantized("--skip", "/head")
        again = self.folder / "again.onnx"
        report = self.ok("quantize", model, "--calibrate", self.folder / "calibration", "-o", again, "--min-linear", "0", "--json").json
        self.assertEqual(report["pairs"], 0)
        self.assertEqual(len(report["given"]), 2)
        self.assertIn("missing_point", {row["code"] for row in report["float"]})
        report = self.ok("quantize", model, "--calibrate", self.folder / "calibration", "-o", again, "--min-linear", "0",
                         "--add-missing", "--json").json
        self.assertEqual(report["pairs"], 1)

    def test_bad_samples_write_nothing(self):
        out = self.folder / "q.onnx"

        def refused(code, path, *says):
            self.fails(code, "quantize", SMALL, "--calibrate", path, "-o", out, "--min-linear", "0", says=says)
            self.assertFalse(out.exists())

        empty = self.folder / "empty"
        empty.mkdir()
        refused(5, empty, "holds no .npy, .npz, .jpg or .png")
        refused(5, self.folder / "nowhere", "E0701")
        (empty / "cat.webp").write_bytes(b"RIFF")
        refused(5, empty, "holds no .npy", "docs/quantization.md")
        folder = self.samples("nan", range(3))
        write_npy(folder / "001.npy", SIZES, [float("nan")] * math.prod(SIZES))
        refused(4, folder, "001.npy", "NaN")
        (folder / "001.npy").write_bytes((folder / "000.npy").read_bytes()[:500])
        refused(5, folder, "001.npy")
        write_npy(folder / "001.npy", (1, 4, 16, 16), values(0, (1, 4, 16, 16)))
        refused(4, folder, "001.npy", "dimension 1 of a sample is 4")
        folder = self.samples("dead", range(2))
        self.fails(5, "quantize", SMALL, "--calibrate", folder, "-o", self.folder / "no/such/q.onnx", says=["no/such"])
        self.fails(2, "quantize", SMALL, "-o", out, says=["--calibrate"])
        self.fails(2, "quantize", SMALL, "-o", out, "--calibrate", "random", "--for", "cpv", says=["E0402", "cpu"])
        self.fails(2, "quantize", SMALL, "-o", out, "--calibrate", "random", "--method", "best", says=["minmax"])

    def test_samples_of_other_types_say_what_is_read(self):
        half = self.folder / "half.fir"
        half.write_text(SMALL.read_text().replace("f32", "f16"))
        floats, numbers = self.samples("floats", range(2)), self.folder / "numbers"
        out = self.folder / "q.onnx"
        self.ok("quantize", half, "--calibrate", floats, "-o", out)  # rounded, as astype does
        numbers.mkdir()
        write_npy(numbers / "0.npy", SIZES, [1] * math.prod(SIZES), descr="<i8")
        self.fails(4, "quantize", half, "--calibrate", numbers, "-o", out, says=["another element type", 'x.astype("float16")'])
        self.fails(4, "quantize", SMALL, "--calibrate", numbers, "-o", out, says=['x.astype("float32")'])

    def test_a_scalar_is_a_sample(self):
        model = self.folder / "scaled.fir"
        model.write_text("graph (%x: f32[1,8,4,4], %t: f32[]) { %w = const rand<1> : f32[8,8,1,1] %c = conv(%x, %w) %y = mul(%c, %t) return %y }")
        folder = self.folder / "scaled"
        folder.mkdir()
        for seed in range(2):
            with zipfile.ZipFile(folder / f"{seed}.npz", "w") as archive:
                for name, sizes in (("x", (1, 8, 4, 4)), ("t", ())):
                    write_npy(self.folder / "a.npy", sizes, values(seed, sizes))
                    archive.write(self.folder / "a.npy", f"{name}.npy")
        self.ok("quantize", model, "--calibrate", folder, "-o", self.folder / "q.onnx")

    def test_files_of_the_same_names_are_other_samples(self):
        self.samples("a", range(3))
        scales = self.folder / "s.json"
        given = ("quantize", SMALL, "-o", self.folder / "q.onnx", "--scales", scales, "--calibrate")
        self.ok(*given, self.folder / "a")
        self.ok(*given, self.folder / "a")
        write_npy(self.folder / "a" / "001.npy", SIZES, values(7))
        self.fails(5, *given, self.folder / "a", says=["other samples", "s.json"])

    def test_an_unfinished_scales_file_is_gone_on_with(self):
        scales = self.folder / "s.json"
        given = ("quantize", SMALL, "--calibrate", self.samples("a", range(5)), "-o", self.folder / "q.onnx", "--scales", scales)
        self.ok(*given)
        whole = json.loads(scales.read_text())
        scales.write_text(json.dumps({**whole, "done": False, "samples": 3}))
        self.ok(*given)
        again = json.loads(scales.read_text())
        self.assertEqual((again["done"], again["samples"]), (True, 5))
        self.assertEqual(again["tensors"][0]["samples"], 7)

    def test_what_is_said_of_pictures_is_not_for_arrays(self):
        _, result = self.quantized("--image-mean", "0.5")
        self.assertIn("holds arrays, which are read as they are", result.err)

    def test_pictures_are_samples(self):
        folder = self.folder / "pictures"
        folder.mkdir()
        for seed in range(4):
            (folder / f"{seed}.png").write_bytes(png(16 + seed, 20, seed))
        (folder / "z.jpg").write_bytes(base64.b64decode(JPEG))
        out = self.folder / "p.onnx"
        given = ("quantize", SMALL, "--calibrate", folder, "-o", out, "--min-linear", "0", "--image-mean", "0.5,0.4,0.3", "--image-std", "0.25", "--json")
        report = self.ok(*given).json
        self.assertEqual(report["calibrated_with"], 5)
        [(low, high)] = [row["range"] for row in report["tensors"] if row["tensor"] == "x"]
        self.assertAlmostEqual(low, -2, delta=0.05)
        self.assertAlmostEqual(high, 2.8, delta=0.15)
        self.ok("compare", out, "--against", SMALL, "--data", folder, "--image-std", "0.25", "--least-sqnr", "10")
        first = out.read_bytes()
        self.ok(*given, "--force", "--image-channels", "bgr", "--image-fit", "crop")
        self.assertNotEqual(out.read_bytes(), first)
        out.unlink()
        damaged = png(16, 16, 1)
        (folder / "2.png").write_bytes(damaged[:len(damaged) // 2])
        self.fails(5, *given[:-1], says=["2.png", "cannot be decoded"])
        (folder / "2.png").unlink()
        (folder / "z.jpg").write_bytes(base64.b64decode(JPEG)[:-8])
        self.fails(5, *given[:-1], says=["z.jpg", "cannot be decoded"])
        write_npy(folder / "a.npy", SIZES, values(1))
        self.fails(5, *given[:-1], says=["arrays", "pictures", "two folders"])
        self.fails(2, *given[:-1], "--image-size", "wide", says=["HEIGHTxWIDTH"])
        self.assertFalse(out.exists())

    @unittest.skipUnless(PYTHON, "OPFUSE_ONNX_PYTHON names no Python with onnx, onnxruntime, openvino")
    def test_other_runtimes_agree(self):
        write_npy(self.folder / "in.npy", SIZES, values(50))
        given = ("--input", f"x={self.folder}/in.npy", "--json")
        for compiler in ("cpu", "tensorrt", "openvino", "onnxruntime"):
            # the runtimes add pairs in 16 bits where the CPU has no VNNI
            model, _ = self.quantized("--for", compiler, "--keep-float", "none", "--pair-sums", "int16")
            self.ok("run", model, *given[:2], "--output-dir", self.folder / "own")
            own = read_npy(self.folder / "own" / "y.npy")[1]
            out = self.folder / "results.json"
            script = self.folder / "runtimes.py"
            script.write_text(RUNTIMES)
            subprocess.run([PYTHON, script, model, out, self.folder / "in.npy"], check=True, capture_output=True)
            for runtime, [got] in json.loads(out.read_text()).items():
                noise = sum((a - b) ** 2 for a, b in zip(own, got)) / sum(a * a for a in own)
                self.assertLess(noise, 1e-3, f"{compiler} in {runtime}: {own} {got}")


if __name__ == "__main__":
    unittest.main()
