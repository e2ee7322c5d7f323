"""What a careless or hasty user meets: outputs that are inputs, flags that say nothing, full disks, Ctrl-C."""
import fcntl
import json
import os
import pathlib
import pty
import shutil
import signal
import struct
import subprocess
import termios
import time

from harness import BINARY, MODELS, CliTest, opfuse, ramp, write_npy

NET = MODELS / "small_net.fir"
PROCESSORS = len(os.sched_getaffinity(0))


class Manners(CliTest):
    def model(self):
        """A model of the user's own, as .onnx."""
        path = self.folder / "m.onnx"
        self.ok("zoo", "mobilenet_v2", "--resolution", "32", "--width", "0.25", "-o", path)
        return path

    def refused(self, path, *arguments, says="would replace the input"):
        before = path.read_bytes()
        self.fails(2, *arguments, says=[says, "E0401"])
        self.assertEqual(path.read_bytes(), before)

    def test_no_output_replaces_an_input(self):
        model = self.model()
        other = self.folder / "link.opf"
        other.symlink_to(model)
        hard = self.folder / "hard.opf"
        os.link(model, hard)
        sub = self.folder / "sub"
        sub.mkdir()
        for path in (model, other, hard, sub / ".." / "m.onnx"):
            self.refused(model, "compile", model, "-o", path, "--force")
            self.refused(model, "fuse", model, "-o", path, "--force")
            self.refused(model, "fuse", model, "--plan-out", path, "--force")
            self.refused(model, "bench", model, "--export-times", path, "--duration", "1ms")
            self.refused(model, "reduce", model, "--fails", "false {}", "-o", path, "--force")
        plan = self.folder / "p.json"
        self.ok("fuse", model, "--plan-out", plan)
        self.refused(plan, "fuse", model, "--plan", plan, "--plan-out", plan)
        self.refused(plan, "compile", model, "--plan", plan, "-o", plan, "--force")

    def test_files_beside_a_model_are_inputs_too(self):
        text = self.folder / "m.fir"
        self.ok("zoo", "mobilenet_v2", "--resolution", "32", "--width", "0.25", "-o", text)
        weights = self.folder / "m.bin"
        self.refused(weights, "compile", text, "-o", weights, "--force")
        self.refused(weights, "fuse", text, "-o", self.folder / "m.fir")
        x = self.folder / "x.npy"
        write_npy(x, [1, 3, 32, 32], ramp(3 * 32 * 32))
        name = self.ok("inspect", text, "--json").json["inputs"][0]["name"]
        shutil.copy(x, self.folder / f"{name}.npy")
        self.refused(self.folder / f"{name}.npy", "run", text, "--input", f"{name}={self.folder}/{name}.npy",
                     "--output-dir", self.folder, "--save-inputs")

    def test_a_suffix_that_says_another_format_is_refused(self):
        for arguments in (("compile", NET, "-o", "g.onnx"), ("compile", NET, "-o", "g.json"),
                          ("fuse", NET, "-o", "g.txt"), ("fuse", NET, "-o", "g.opf"),
                          ("fuse", NET, "--plan-out", "g.onnx"), ("zoo", "mobilenet_v2", "-o", "g.txt"),
                          ("report", NET, "-o", "g.txt"), ("report", NET, "--format", "svg", "-o", "g.dot")):
            self.fails(2, *arguments, says=["--force"], cwd=self.folder)
        for verb in ("fuse", "report"):  # the suffix was to choose the format
            self.fails(2, verb, NET, "-o", "g.xyz", says=["not .xyz", "--force", " or "], cwd=self.folder)
        self.assertNotIn("--force", self.fails(2, "bench", NET, "--export-times", "g.onnx", says=["not .onnx"], cwd=self.folder).err)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.ok("compile", NET, "-o", "g.bin", "--force", cwd=self.folder)
        self.ok("compile", NET, "-o", "g.engine", cwd=self.folder)  # no format of anybody else here
        self.ok("compile", NET, "-o", "plain", cwd=self.folder)

    def test_flags_that_cannot_apply_are_refused(self):
        opf = self.folder / "m.opf"
        self.ok("compile", NET, "-o", opf)
        for verb in ("run", "bench", "profile"):
            for flags in (("--target", "cpu:avx2"), ("--exact",), ("--only", "ConvBN"), ("--no-chains",), ("--no-pass", "join-chains"),
                          ("--max-group-nodes", "3"), ("--precision", "bf16"), ("--compile-threads", "1"), ("--dump-dir", "d"), ("--fallback",),
                          ("--place", "a=cpu"), ("--operator", "f(x) = x"), ("--reproducer-dir", "d"), ("--limit", "inlined_nodes=3")):
                self.fails(2, verb, opf, *flags, says=[f"{flags[0]} does not apply", "compile"])
        self.fails(2, "inspect", opf, "--limit", "inlined_nodes=3", says=["--limit does not apply"])
        self.fails(2, "run", NET, "--reference", "--no-chains", says=["--reference compiles nothing"])
        self.fails(2, "explain", NET, "--json", "--jsonl", says=["exclude each other"])
        self.fails(2, "explain", NET, "--edge", "a", "b", "--json", says=["--json does not apply"])
        given = self.folder / "x.npy"
        write_npy(given, [1, 3, 16, 16], ramp(768))
        name = self.ok("inspect", NET, "--json").json["inputs"][0]["name"]
        self.fails(2, "run", NET, "--input", f"{name}={given}", "--range", f"{name}=0..1", says=[f"--range {name} does not apply"])
        self.fails(2, "inspect", opf, "--show", "layers", says=["--show layers does not apply"])
        self.fails(2, "inspect", NET, "--show", "layouts", says=["--show layouts does not apply"])
        self.fails(2, "run", NET, "--save-inputs", says=["--output-dir"])
        self.fails(2, "run", NET, "--atol", "1", says=["--expect"])
        self.fails(2, "run", NET, "--reference", "--exact", says=["--reference compiles nothing"])
        self.fails(2, "compile", NET, "-o", opf, "--unfused", "--only", "ConvBN", says=["--only does not apply"])
        self.fails(2, "compile", NET, "-o", opf, "--allow-stale", says=["--plan"])
        self.fails(2, "fuse", NET, "--flatten", says=["--flatten does not apply"])
        self.fails(2, "bench", NET, "--alone", says=["--kernels"])
        self.ok("run", opf, "--threads", "1")

    def test_help_and_near_misses_of_flags(self):
        self.assertIn("Usage", self.ok("help", "fuse").out)
        self.assertEqual(self.ok("-V").out, self.ok("--version").out)
        self.fails(2, "fuse", NET, "--dryrun", says=["E0401", "fuse has no flag --dryrun", "did you mean --dry-run?", "repeat: opfuse fuse"])
        self.fails(2, "fuse", NET, "--target", says=["E0401", "repeat: opfuse"])

    def test_what_fusion_missed_names_no_group_that_has_as_much(self):
        text = self.ok("explain", "zoo:resnet18", "--missed").out
        self.assertNotIn("LinearReLU at /layer1/layer1.0/relu_1/Relu", text)
        both = self.ok("explain", NET, "--missed").out
        self.assertFalse("nothing was missed" in both and "APART" in both, both)

    def test_bash_completes_verbs_flags_and_built_in_models(self):
        script = pathlib.Path(__file__).resolve().parents[2] / "tools/opfuse/completion.bash"
        (self.folder / "opfuse").symlink_to(BINARY)

        def completed(*words):
            text = f'source {script}; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _opfuse; printf "%s\\n" "${{COMPREPLY[@]}}"'
            done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})
            return done.stdout.split()
        self.assertEqual(completed("opfuse", "opt"), ["optimize", "options"])
        self.assertEqual(completed("opfuse", "fuse", "--plan-"), ["--plan-out"])
        self.assertIn("--output", completed("opfuse", "fuse", "--"))
        self.assertIn("zoo:resnet50", completed("opfuse", "fuse", "zoo:resn"))

    def test_quiet_says_nothing_but_warnings_and_errors(self):
        fused = self.folder / "f.onnx"
        talk = self.ok("fuse", NET, "-o", fused)
        self.assertIn("wrote", talk.err)
        quiet = self.ok("fuse", NET, "-o", fused, "-q")
        self.assertEqual((len(quiet.out.splitlines()), quiet.err), (len(talk.out.splitlines()), ""))
        self.assertEqual(self.ok("compile", NET, "-o", self.folder / "m.opf", "--quiet", "--dim", "batch=1").err, "")
        self.fails(5, "fuse", self.folder / "none.onnx", "-q", says=["E0701"])

    def test_a_model_on_standard_input(self):
        model, opf = self.model(), self.folder / "m.opf"

        def given(data, *arguments):
            return subprocess.run([BINARY, *map(str, arguments)], input=data, capture_output=True)
        named = self.ok("explain", model, "--missed")
        piped = given(model.read_bytes(), "explain", "-", "--missed")
        self.assertEqual((piped.returncode, piped.stdout.decode()), (0, named.out))
        with open(model, "rb") as file:
            redirected = subprocess.run([BINARY, "explain", "/dev/stdin", "--missed"], stdin=file, capture_output=True)
        self.assertEqual(redirected.stdout.decode(), named.out)
        self.assertEqual(given(model.read_bytes(), "compile", "-", "-o", opf).returncode, 0)
        self.assertIn(b"launch", given(opf.read_bytes(), "inspect", "-").stdout)
        self.assertEqual(given(NET.read_bytes(), "inspect", "-").returncode, 0)
        for data, code, says in ((b"", 3, b"E0101"), (b"<html>", 3, b"E0101"), (opf.read_bytes(), 2, b"holds only its machine code")):
            wrong = given(data, "explain", "-")
            self.assertEqual(wrong.returncode, code, wrong.stderr)
            self.assertIn(says, wrong.stderr)
            self.assertNotIn(b"/proc/self", wrong.stderr)
        self.fails(2, "fuse", model, "-o", "-", says=["E0401", "/dev/stdout"])

    def test_the_manual_has_every_verb_and_flag(self):
        page = self.ok("options", "--man").out
        options = self.ok("options", "--json").json
        for verb, rows in options["verbs"].items():
            self.assertIn(f".SS opfuse {verb}\\fI", page)
            for row in rows:
                self.assertIn(row["option"].replace("-", "\\-"), page)
        self.assertFalse([line for line in page.splitlines() if line.startswith("'")])
        if shutil.which("man"):
            path = self.folder / "opfuse.1"
            path.write_text(page)
            done = subprocess.run(["man", "--warnings", "-l", path], capture_output=True, env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C"})
            self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_a_failure_is_a_document_too(self):
        done = opfuse("inspect", self.folder / "none.onnx", "--json")
        self.assertEqual((done.code, done.json["schema"], done.json["code"]), (5, "opfuse.error/1", "E0701"))
        self.assertIn("E0701", done.err)
        self.assertEqual(opfuse("inspect", self.folder / "none.onnx").out, "")

    def test_a_broken_plan_names_the_entry(self):
        plan, broken = self.folder / "p.json", self.folder / "b.json"
        self.ok("fuse", NET, "--plan-out", plan)
        document = json.loads(plan.read_text())
        document["matches"][0]["apply"] = "yes"
        broken.write_text(json.dumps(document))
        failed = opfuse("fuse", NET, "--plan", broken)
        self.assertEqual(failed.code, 5, failed.err)
        self.assertIn(f"match 1 ({document['matches'][0]['id']}): type must be boolean", failed.err)
        self.assertNotIn("json.exception", failed.err)

    def test_tables_are_as_wide_as_the_terminal(self):
        opf = self.folder / "m.opf"
        self.ok("compile", self.model(), "-o", opf, "-q")
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 90, 0, 0))
        process = subprocess.Popen([BINARY, "inspect", opf], stdout=follower)
        os.close(follower)
        text = b""
        try:
            while chunk := os.read(leader, 1 << 16):
                text += chunk
        except OSError:  # the other end is closed
            pass
        os.close(leader)
        self.assertEqual(process.wait(), 0)
        table = [line for line in text.decode().splitlines() if "Fused" in line]
        self.assertTrue(table)
        self.assertTrue(all(len(line) <= 90 for line in table), max(table, key=len))
        self.assertTrue(any(len(line) > 90 for line in self.ok("inspect", opf).out.splitlines()), "whole in a pipe")

    def test_patterns_that_fire_nowhere_are_named_not_listed(self):
        toml = pathlib.Path(__file__).resolve().parents[2] / "examples/patterns/gate.toml"
        out = self.ok("fuse", NET, "--patterns", toml).out
        nowhere = next(line for line in out.splitlines() if line.startswith("  nowhere"))
        for name in ("ConvGate", "ScaledDotProductAttention"):
            self.assertIn(name, nowhere)
        self.assertNotRegex(out, r"(?m)^  ScaledDotProductAttention +0 +0")

    def test_one_dimension_has_one_size(self):
        model = self.folder / "square.fir"
        model.write_text('graph (%x: f32[1,n,n]) { %y = relu(%x) return %y }')
        for flags in (("--shape", "x:1x4x7"), ("--dim", "n=4", "--shape", "x:1x4x7"), ("--dim", "n=4", "--dim", "n=7"),
                      ("--dim", "n=4", "--shape", "x:1x7x7")):
            self.fails(2, "run", model, *flags, says=["E0401", "4", "7"])
        self.ok("run", model, "--shape", "x:1x4x4", "--dim", "n=4")

    def test_limits_have_names(self):
        self.ok("inspect", NET, "--limit", "unrolled_nodes=5", "--limit", "arena_comparisons=1")
        self.ok("fuse", NET, "--dry-run", "--limit", "priced_operands=9", "--limit", "folded_reals=1")
        self.fails(2, "inspect", NET, "--limit", "unroled_nodes=5", says=["unrolled_nodes", "E0402"])
        self.fails(2, "inspect", NET, "--limit", "unrolled_nodes=0", says=["at least 1", "E0401"])
        self.fails(2, "inspect", NET, "--limit", "dim_depth=1000000", says=["at most", "E0401"])
        self.assertIn("unrolled_steps", self.ok("options").out)

    def test_a_refusal_names_what_the_interpreter_does(self):
        model = self.folder / "boxes.fir"
        model.write_text("""graph (%b: f32[1,6,4], %s: f32[1,1,6]) {
          %k = const splat<3> : i64[1] %y = non_max_suppression(%b, %s, %k) return %y }""")
        self.fails(3, "run", model, "--allow-reference", says=["E0502", "sizes of", "follow from data", "run --reference"])
        self.ok("run", model, "--reference")

    def test_runs_have_no_more_threads_than_processors(self):
        many = str(PROCESSORS + 1000)
        result = self.ok("run", NET, "--threads", many)
        self.assertIn(f"note: --threads {many}: this process may use {PROCESSORS} processor", result.err)
        result = self.ok("bench", NET, "--threads", many, "--duration", "5ms", "--warmup", "1ms", "--json")
        self.assertEqual(result.json["threads"], PROCESSORS)
        opf = self.folder / "m.opf"
        self.assertNotIn("note: --threads", self.ok("compile", NET, "-o", opf, "--threads", "64").err)
        self.assertNotIn("note: --threads", self.ok("run", opf, "--threads", str(PROCESSORS)).err)

    def test_a_full_or_closed_stdout_is_a_failed_write(self):
        for verb in (("ops",), ("errors", "--json"), ("inspect", NET), ("--version",)):
            with open("/dev/full", "w") as full:
                done = subprocess.run([BINARY, *map(str, verb)], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("cannot write to stdout: No space left", done.stderr)
            self.assertEqual(done.stderr.count("E0702"), 1)
            self.assertNotIn("internal", done.stderr)
            command = " ".join([BINARY, *map(str, verb)])
            self.assertEqual(subprocess.run(command + " >&-", shell=True, stderr=subprocess.PIPE).returncode, 5)
        done = subprocess.run(f"{BINARY} options --json | head -c 10 >/dev/null; exit ${{PIPESTATUS[0]}}", shell=True,
                              executable="/bin/bash", stderr=subprocess.PIPE, text=True)
        self.assertIn(done.returncode, (0, 5))  # what fits into the pipe's buffer is written
        self.assertEqual(done.stderr, "")

    def test_a_closed_stdout_never_becomes_the_model(self):
        opf = self.folder / "m.opf"
        done = subprocess.run(f"{BINARY} compile {NET} -o {opf} >&-", shell=True, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 5, done.stderr)
        if opf.exists():
            self.assertEqual(opf.read_bytes()[:6], b"OPFUSE")

    def interrupted(self, seconds, *arguments):
        process = subprocess.Popen([BINARY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=200)
        self.assertEqual(process.returncode, 130, err)
        self.assertNotRegex(out, r"\b(inf|nan|PASSED)\b")
        return out, err

    def test_an_interrupted_bench_says_what_was_measured(self):
        out, err = self.interrupted(2, "bench", NET, "--warmup", "60s")
        self.assertEqual(out, "")
        self.assertIn("nothing was measured", err)
        out, err = self.interrupted(3, "bench", NET, "--warmup", "1ms", "--duration", "60s")
        self.assertIn("latency", out)
        self.assertIn("interrupted", err)

    def test_an_interrupt_while_nothing_is_measured_ends_at_once(self):
        for arguments in (("bench", "--kernels", "random"), ("bench", "zoo:vgg16", "--no-cache", "--vs-unfused")):
            start = time.time()
            out, err = self.interrupted(0.5, *arguments)
            self.assertEqual(out, "")
            self.assertIn("nothing was measured", err)
            self.assertLess(time.time() - start, 10)  # the limits of a machine alone take longer

    def test_an_interrupted_demo_shows_no_half_result(self):
        for seconds in (0.4, 3):
            out, err = self.interrupted(seconds, "demo", "--model", "mobilenet_v2", "--seconds", "60")
            self.assertIn("interrupted", err)

    def test_reproducers_are_offered_a_folder(self):
        self.assertIn("--reproducer-dir", self.ok("compile", "--help").out)

    def test_a_swapped_file_of_the_cache_is_not_taken(self):
        cache = self.folder / "cache"
        environment = {"XDG_CACHE_HOME": str(cache)}
        model = self.model()
        before = self.ok("run", model, "--output-dir", self.folder / "a", environment=environment)
        kernels = sorted((cache / "opfuse" / "kernels").iterdir())
        self.assertGreater(len(kernels), 3)
        bytes_of = [path.read_bytes() for path in kernels]
        for path, bytes in zip(kernels, bytes_of[1:] + bytes_of[:1]):
            path.write_bytes(bytes)
        after = self.ok("run", model, "--output-dir", self.folder / "b", environment=environment)
        self.assertEqual(before.out, after.out)
