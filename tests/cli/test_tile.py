"""A kernel's inner tile from a target's file: examples/tile in C, as LLVM IR, as an object, in an archive."""
import os
import pathlib
import shutil
import subprocess
import unittest

from harness import CliTest

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "tile"
COMPILER = shutil.which(os.environ.get("CC", "cc"))
# Rows, columns and depth that are no multiples of 16, and every spelling of a Linear.
NET = """graph (%x: f32[37,50]) {
  %w1 = const rand<1> : f32[50,90]
  %b1 = const rand<2> : f32[90]
  %w2 = const rand<3> : f32[21,90]
  %b2 = const rand<4> : f32[21]
  %w3 = const rand<5> : f32[21,50]
  %s = const splat<1> : f32[50]
  %m = matmul(%x, %w1) @"first"
  %a = add(%b1, %m)
  %g = gelu(%a)
  %n = gemm(%g, %w2, %b2) {transB = 1} @"second"
  %r = relu(%n)
  %q = matmul(%r, %w3) @"third"
  %t = add(%x, %q)
  %l = layer_norm(%t, %s) @"norm"
  %y = softmax(%l) @"soft"
  return %y }"""
OPEN = """graph (%x: f32[batch,20,33]) {
  %w = const rand<1> : f32[33,18]
  %m = matmul(%x, %w) @"mm"
  %y = silu(%m)
  return %y }"""


@unittest.skipUnless(COMPILER, "no C compiler")
class Tile(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "net.fir"
        self.model.write_text(NET)

    def target(self, source="dense.c", text=None, tile="[16, 16]", extends="cpu:avx2", needs=""):
        """The example's file with other words; `text` is written as the source."""
        words = (EXAMPLE / "tile.toml").read_text().replace('"dense.c"', f'"{source}"').replace("[16, 16]", tile)
        words = words.replace('extends = "cpu:avx2"', f'extends = "{extends}"').replace("in_features >= 16\"", "in_features >= 16\"" + needs)
        (self.folder / source).write_text(text) if text is not None else shutil.copy(EXAMPLE / "dense.c", self.folder)
        path = self.folder / "tile.toml"
        path.write_text(words)
        return path

    def launches(self, target, model=None):
        opf = self.folder / "made.opf"
        self.ok("compile", model or self.model, "--target", target, "-o", opf, "--force")
        return self.ok("inspect", opf, "--json").json["launches"]

    def tiled(self, target, model=None):
        return [l["kernel"] for l in self.launches(target, model) if l["schedule"].startswith("intrinsic")]

    def test_all_linears_with_their_epilogues_call_the_tile_and_nothing_else_changes(self):
        path = self.target()
        self.assertEqual(len(self.tiled(path)), 3)
        self.assertIn("PASSED", self.ok("compare", self.model, "--target", path).out)
        own = [l for l in self.launches(path) if not l["schedule"].startswith("intrinsic")]
        alone = {l["kernel"]: l["schedule"] for l in self.launches("cpu:avx2")}
        self.assertEqual(len(own), 2)
        self.assertEqual([l["schedule"] for l in own], [alone[l["kernel"]] for l in own])
        lines = sum(len((EXAMPLE / name).read_text().splitlines()) for name in ("dense.c", "tile.toml"))
        self.assertLessEqual(lines, 60)

    def test_open_sizes_saved_and_loaded(self):
        model, opf = self.folder / "open.fir", self.folder / "open.opf"
        model.write_text(OPEN)
        path = self.target()
        self.assertEqual(len(self.tiled(path, model)), 1)
        self.assertIn("PASSED", self.ok("compare", model, "--target", path, "--dim", "batch=3").out)
        self.ok("compile", model, "--target", path, "--dim", "batch=any", "-o", opf)
        (self.folder / "dense.c").unlink()
        self.ok("run", opf, "--dim", "batch=5")

    def test_every_width_and_shape_of_tile(self):
        loops = ("void dense_16x16(float* s, const float* a, const float* w, long k) {{\n"
                 "  for (int i = 0; i < {r}; ++i) for (long d = 0; d < k; ++d) for (int j = 0; j < {c}; ++j)\n"
                 "    s[i * {c} + j] += a[i * k + d] * w[d * {c} + j];\n}}\n")
        for extends, (r, c, d) in (("cpu:baseline", (16, 16, 1)), ("host", (8, 32, 4)), ("cpu:avx2", (5, 12, 16)), ("cpu:avx2", (1, 3, 7))):
            with self.subTest((extends, r, c, d)):
                base = self.ok("targets", "list", "--json").json["host"] if extends == "host" else extends
                path = self.target(text=loops.format(r=r, c=c), tile=f"[{r}, {c}, {d}]", extends=base)
                self.assertEqual(len(self.tiled(path)), 3)
                self.assertIn("PASSED", self.ok("compare", self.model, "--target", path).out)

    def test_what_the_tile_computes_is_what_is_compared(self):
        wrong = (EXAMPLE / "dense.c").read_text().replace("a += x[k] * w;", "a += x[k] * w * (k == 3 ? 2.0f : 1.0f);")
        path = self.target(text=wrong)
        self.assertIn("FAILED", self.fails(1, "compare", self.model, "--target", path).out)

    def test_llvm_ir_objects_and_archives(self):
        self.target()
        source, folder = self.folder / "dense.c", self.folder
        subprocess.run([COMPILER, "-O2", "-fPIC", "-mavx2", "-c", source, "-o", folder / "dense.o"], check=True)
        subprocess.run(["ar", "rcs", folder / "libdense.a", folder / "dense.o"], check=True)
        kinds = ["dense.o", "libdense.a"]
        ir = """define void @dense_16x16(ptr %s, ptr %a, ptr %w, i64 %k) {
entry:
  br label %row
row:
  %i = phi i64 [ 0, %entry ], [ %i1, %stored ]
  %so = mul i64 %i, 16
  %sp = getelementptr float, ptr %s, i64 %so
  %first = load <16 x float>, ptr %sp, align 4
  %ao = mul i64 %i, %k
  br label %step
step:
  %d = phi i64 [ 0, %row ], [ %d1, %step ]
  %sum = phi <16 x float> [ %first, %row ], [ %more, %step ]
  %at = add i64 %ao, %d
  %ap = getelementptr float, ptr %a, i64 %at
  %x = load float, ptr %ap, align 4
  %wo = mul i64 %d, 16
  %wp = getelementptr float, ptr %w, i64 %wo
  %row.w = load <16 x float>, ptr %wp, align 4
  %one = insertelement <16 x float> poison, float %x, i64 0
  %all = shufflevector <16 x float> %one, <16 x float> poison, <16 x i32> zeroinitializer
  %product = fmul <16 x float> %all, %row.w
  %more = fadd <16 x float> %sum, %product
  %d1 = add i64 %d, 1
  %again = icmp slt i64 %d1, %k
  br i1 %again, label %step, label %stored
stored:
  store <16 x float> %more, ptr %sp, align 4
  %i1 = add i64 %i, 1
  %next = icmp slt i64 %i1, 16
  br i1 %next, label %row, label %done
done:
  ret void
}
"""
        (folder / "dense.ll").write_text(ir)
        for kind in [*kinds, "dense.ll"]:
            with self.subTest(kind):
                path = folder / "kind.toml"
                path.write_text((EXAMPLE / "tile.toml").read_text().replace('"dense.c"', f'"{kind}"'))
                self.assertEqual(len(self.tiled(path)), 3)
                self.assertIn("PASSED", self.ok("compare", self.model, "--target", path).out)

    def test_a_precondition_says_what_would_satisfy_it(self):
        path = self.target(needs=', "linear.out_features % 10 == 0"')
        self.assertEqual(len(self.tiled(path)), 2)
        text = self.ok("explain", self.model, "--target", path).out
        self.assertRegex(text, r"linear.out_features % 10 == 0 does not hold: linear.out_features is 21; pad linear.out_features by 9")

    def test_what_is_no_tile_is_refused_with_reason(self):
        broken = (("dense.c", "int dense_16x16(", 3, "refused the tile"),
                  ("dense.c", "void other(void) {}", 3, "does not define dense_16x16"),
                  ("dense.c", "void puts(const char*); void dense_16x16(void) { puts(\"\"); }", 3, "needs the symbol 'puts'"),
                  ("dense.c", "static int n; void dense_16x16(float* s) { s[0] = n++; }", 3, "variables"),
                  ("dense.ll", "define void @dense_16x16() { ret i32 }", 3, "dense.ll:1:"))
        for source, text, code, says in broken:
            with self.subTest(says):
                result = self.fails(code, "run", self.model, "--target", self.target(source, text))
                self.assertIn(says, result.err)
        check = lambda words: self.fails(1, "targets", "check", self.write(words)).out
        words = (EXAMPLE / "tile.toml").read_text()
        self.assertIn("cannot open", check(words))
        self.assertIn("kernels hold their code", check(words.replace("dense.c", "libdense.so")))
        self.assertIn("lacks symbol", check(words.replace('symbol = "dense_16x16", ', "")))
        self.assertIn("numbers from 1 to 256", check(words.replace("[16, 16]", "[16, 0]")))
        self.assertIn("are of cpu targets", check(words.replace('extends = "cpu:avx2"', 'kind = "accelerator"')))

    def write(self, words):
        folder = self.folder / "alone"
        folder.mkdir(exist_ok=True)
        (folder / "alone.toml").write_text(words)
        return folder / "alone.toml"


if __name__ == "__main__":
    unittest.main()
