"""The C API as a C program sees it: what libopfuse_runtime.so exports and needs, the example, errors; and a model as an
object file with a header, linked and run without any library of opfuse."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
from harness import CliTest, read_npy, write_npy, ramp  # noqa: E402

LIBRARY = pathlib.Path(os.environ["OPFUSE_RUNTIME"])
MODELS = ROOT / "tests/cli/models"
C = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-I", str(ROOT / "include")]
CXX = ["c++", "-std=c++11", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-I", str(ROOT / "include")]
LINK = [str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]

ERRORS = r"""
#include <opfuse/opfuse.h>
#include <stdio.h>
#include <string.h>
#define EXPECT(x) do { if (!(x)) { printf("line %d: %s [%s]\n", __LINE__, #x, opfuse_last_error()); return 1; } } while (0)
int main(int argc, char** argv) {
  opfuse_executable* model = NULL;
  opfuse_context* context = NULL;
  opfuse_tensor_info info = {0};
  opfuse_array array = {0};
  int64_t shape[4] = {1, 3, 16, 15};
  (void)argc;
  EXPECT(strcmp(opfuse_last_error(), "") == 0);
  EXPECT(opfuse_check_abi(OPFUSE_ABI) == OPFUSE_OK);
  EXPECT(opfuse_check_abi(OPFUSE_ABI + 1) == OPFUSE_OTHER_ABI);
  EXPECT(strstr(opfuse_last_error(), "ABI"));
  EXPECT(opfuse_load("/nowhere.opf", &model) == OPFUSE_BAD_FILE && model == NULL);
  EXPECT(strstr(opfuse_last_error(), "E0701"));
  EXPECT(opfuse_load(argv[2], &model) == OPFUSE_BAD_FILE && model == NULL);
  EXPECT(opfuse_load(NULL, &model) == OPFUSE_BAD_ARGUMENT);
  EXPECT(opfuse_load(argv[1], NULL) == OPFUSE_BAD_ARGUMENT);
  EXPECT(opfuse_load(argv[1], &model) == OPFUSE_OK);
  EXPECT(opfuse_input_count(model) == 1 && opfuse_output_count(model) == 1);
  EXPECT(opfuse_input_info(model, 0, &info) == OPFUSE_BAD_ARGUMENT);
  EXPECT(strstr(opfuse_last_error(), "size"));
  info.size = sizeof info;
  EXPECT(opfuse_input_info(model, 1, &info) == OPFUSE_BAD_ARGUMENT);
  EXPECT(opfuse_input_info(model, 0, &info) == OPFUSE_OK && info.rank == 4 && info.type == OPFUSE_F32);
  EXPECT(opfuse_context_create(NULL, NULL, &context) == OPFUSE_BAD_ARGUMENT);
  EXPECT(opfuse_context_create(model, NULL, &context) == OPFUSE_OK);
  EXPECT(opfuse_run(context) == OPFUSE_BAD_BINDING);
  EXPECT(strstr(opfuse_last_error(), "E0602"));
  EXPECT(opfuse_bind(context, info.name, &array) == OPFUSE_BAD_ARGUMENT);
  array.size = sizeof array; array.rank = 4; array.shape = shape; array.data = shape;
  EXPECT(opfuse_bind(context, info.name, &array) == OPFUSE_BAD_BINDING);
  EXPECT(opfuse_bind(context, "nothing", &array) == OPFUSE_BAD_BINDING);
  EXPECT(opfuse_output(context, "nothing", &array) == OPFUSE_BAD_BINDING);
  opfuse_free(model);
  opfuse_context_free(context);
  opfuse_context_free(NULL);
  opfuse_free(NULL);
  printf("ok\n");
  return 0;
}
"""

ON_DEVICE = r"""
#include <opfuse/opfuse.h>
#include <stdio.h>
#define EXPECT(x) do { if (!(x)) { printf("line %d: %s [%s]\n", __LINE__, #x, opfuse_last_error()); return 1; } } while (0)
int main(int argc, char** argv) {
  opfuse_executable* model = NULL;
  opfuse_context *first = NULL, *second = NULL;
  opfuse_context_options options = {sizeof options, 1, 0, 0, 1};
  const int64_t shape[1] = {64};
  float x[64], y[64];
  opfuse_array array = {sizeof array, OPFUSE_F32, 1, shape, x}, result = {sizeof result, 0, 0, NULL, NULL};
  int i;
  (void)argc;
  for (i = 0; i < 64; ++i) x[i] = (float)i;
  EXPECT(opfuse_load(argv[1], &model) == OPFUSE_OK);
  EXPECT(opfuse_context_create(model, &options, &first) == OPFUSE_OK);
  options.size = 16; /* of ABI 1: what lies behind is not read */
  EXPECT(opfuse_context_create(model, &options, &second) == OPFUSE_OK);
  EXPECT(opfuse_bind(first, "x", &array) == OPFUSE_OK && opfuse_run(first) == OPFUSE_OK);
  EXPECT(opfuse_output(first, "y", &result) == OPFUSE_OK);
  EXPECT(opfuse_bind(second, "x", &result) == OPFUSE_BAD_BINDING); /* it is no memory of the host */
  EXPECT(opfuse_bind_on_device(second, "x", &result, -1) == OPFUSE_BAD_ARGUMENT);
  EXPECT(opfuse_bind_on_device(second, "x", &result, 1) == OPFUSE_BAD_BINDING);
  EXPECT(opfuse_bind_on_device(second, "x", &array, 0) == OPFUSE_BAD_BINDING);
  EXPECT(opfuse_bind_on_device(second, "x", &result, 0) == OPFUSE_OK);
  array.data = y;
  EXPECT(opfuse_bind(second, "y", &array) == OPFUSE_OK);
  EXPECT(opfuse_run_on(second, NULL) == OPFUSE_OK && opfuse_wait(second) == OPFUSE_OK);
  for (i = 0; i < 64; ++i) EXPECT(y[i] == 4 * x[i]);
  opfuse_context_free(first);
  opfuse_context_free(second);
  opfuse_free(model);
  printf("ok\n");
  return 0;
}
"""

RUN_OBJECT = r"""
#include "%(name)s.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int calls = 0;
static void backwards(void* user, int64_t parts, void (*work)(void*, int64_t, int), void* call) {
  int64_t part;
  ++*(int*)user;
  for (part = parts; part-- > 0;) work(call, part, (int)(part & 1));
}
int main(int argc, char** argv) {
  char *x = (char*)malloc(%(upper)s_INPUT_0_BYTES), *y = (char*)malloc(%(upper)s_OUTPUT_0_BYTES), *z = (char*)malloc(%(upper)s_OUTPUT_0_BYTES);
  void* workspace = NULL;
  const void* inputs[1] = {x};
  void *outputs[1] = {y}, *again[1] = {z};
  FILE* file = fopen(argv[1], "rb");
  (void)argc;
  if (!%(name)s_supported() || posix_memalign(&workspace, 64, %(upper)s_WORKSPACE_BYTES(2))) return 2;
  memset(workspace, 0x7f, %(upper)s_WORKSPACE_BYTES(2));
  if (fseek(file, -(long)%(upper)s_INPUT_0_BYTES, SEEK_END) || fread(x, %(upper)s_INPUT_0_BYTES, 1, file) != 1) return 3;
  %(name)s_run(inputs, outputs, workspace);
  %(name)s_run_parallel(inputs, again, workspace, backwards, &calls);
  if (memcmp(y, z, %(upper)s_OUTPUT_0_BYTES) || calls == 0) return 4;
  file = fopen(argv[2], "wb");
  fwrite(y, %(upper)s_OUTPUT_0_BYTES, 1, file);
  return fclose(file);
}
"""


class CApi(CliTest):
    def compiled(self, model, *arguments):
        opf = self.folder / "m.opf"
        self.ok("compile", model, "-o", opf, *arguments)
        return opf

    def build(self, text, name, command=C, link=LINK, suffix=".c"):
        source, program = self.folder / (name + suffix), self.folder / name
        source.write_text(text)
        done = subprocess.run([*command, str(source), "-o", str(program), *map(str, link)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def test_the_library_exports_the_list_and_needs_libc_alone(self):
        listed = (ROOT / "tests/capi/exported_symbols.txt").read_text().split()
        declared = re.findall(r"^OPFUSE_C_API [\w* ]*?\b(opfuse_\w+)\(", (ROOT / "include/opfuse/opfuse.h").read_text(), re.M)
        self.assertEqual(sorted(declared), listed, "opfuse.h against exported_symbols.txt")
        table = subprocess.run(["nm", "-D", "--defined-only", str(LIBRARY)], capture_output=True, text=True, check=True).stdout
        self.assertEqual(sorted(line.split()[-1] for line in table.splitlines()), listed, "libopfuse_runtime.so against exported_symbols.txt")
        needed = subprocess.run(["readelf", "-d", str(LIBRARY)], capture_output=True, text=True, check=True).stdout
        needed = set(re.findall(r"NEEDED.*\[(.*?)\]", needed))
        self.assertLessEqual({n.split(".so")[0] for n in needed}, {"libc", "libm", "ld-linux-x86-64", "libpthread", "libdl"})
        stripped = self.folder / "stripped.so"
        subprocess.run(["strip", "-o", str(stripped), str(LIBRARY)], check=True)
        self.assertLessEqual(stripped.stat().st_size, 3_000_000)

    def test_the_example_runs_and_gives_what_run_gives(self):
        opf = self.compiled("zoo:resnet18")
        program = self.build((ROOT / "examples/run_in_c/run_in_c.c").read_text(), "run_in_c")
        done = subprocess.run([str(program), str(opf)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        write_npy(self.folder / "x.npy", (1, 3, 224, 224), [0.0] * (3 * 224 * 224))
        self.ok("run", opf, "--input", f"input={self.folder}/x.npy", "--output-dir", self.folder)
        values = read_npy(self.folder / "output.npy")[1]
        best = max(range(1000), key=values.__getitem__)
        self.assertIn(f"1000 values, the largest is {values[best]:g} at {best}", done.stdout)

    def test_errors_are_statuses(self):
        opf = self.compiled(MODELS / "small_net.fir")
        broken = self.folder / "broken.opf"
        broken.write_bytes(opf.read_bytes()[:-100])
        for name, command, suffix in (("errors", C, ".c"), ("errors_cpp", CXX, ".cpp")):
            program = self.build(ERRORS, name, command=command, suffix=suffix)
            done = subprocess.run([str(program), str(opf), str(broken)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)

    def test_arrays_of_a_gpu_stay_there(self):
        model = self.folder / "twice.fir"
        model.write_text("graph (%x: f32[64]) { %y = add(%x, %x) return %y }")
        opf = self.compiled(model, "--target", "cuda:emulated")
        done = subprocess.run([str(self.build(ON_DEVICE, "on_device")), str(opf)], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)

    def check_object(self, model, name, shape, *arguments):
        self.ok("compile", model, "--emit", "object", self.folder, *arguments)
        text = RUN_OBJECT % {"name": name, "upper": name.upper()}
        write_npy(self.folder / "x.npy", shape, ramp(int(__import__("math").prod(shape))))
        for command, suffix in ((C + ["-D_GNU_SOURCE"], ".c"), (CXX + ["-D_GNU_SOURCE"], ".cpp")):
            program = self.build(text, "run" + suffix[1:], command=command + ["-I", str(self.folder)], link=[self.folder / f"{name}.o"], suffix=suffix)
            done = subprocess.run([str(program), str(self.folder / "x.npy"), str(self.folder / "y.bin")])
            self.assertEqual(done.returncode, 0)
            self.ok("run", model, "--input", self.folder / "x.npy", "--output-dir", self.folder, "--threads", "1", *arguments)
            output = next(p for p in self.folder.glob("*.npy") if p.name != "x.npy")
            want = output.read_bytes()
            got = (self.folder / "y.bin").read_bytes()
            self.assertTrue(want.endswith(got) and len(got) > 0, "the same bits as opfuse run")
            needed = subprocess.run(["readelf", "-d", str(program)], capture_output=True, text=True).stdout
            self.assertNotIn("opfuse", needed)

    def test_an_object_runs_without_a_library(self):
        self.check_object(MODELS / "small_net.fir", "small_net", (1, 3, 16, 16))

    def test_an_object_writes_bodies_out(self):
        model = self.folder / "steps.fir"
        model.write_text("""graph (%x: f32[5,2,8]) {
  %w = const rand<1> : f32[1,32,8]
  %r = const rand<2> : f32[1,32,8]
  %b = const rand<3> : f32[1,64]
  %y, %h, %c = lstm(%x, %w, %r, %b) {hidden_size = 8}
  return %y
}
""")
        self.check_object(model, "steps", (5, 2, 8))

    def test_what_an_object_cannot_be(self):
        model = MODELS / "small_net.fir"
        self.fails(2, "compile", model, "--emit", "object", self.folder, "--target", "cuda:sm_80", says=["object"])
        dynamic = self.folder / "open.fir"
        dynamic.write_text("graph (%x: f32[n,8]) { %y = relu(%x) return %y }")
        self.fails(3, "compile", dynamic, "--emit", "object", self.folder, "--dim", "n=any", says=["--dim NAME=SIZE"])


if __name__ == "__main__":
    unittest.main()
