"""Input that nobody means: empty values, negative numbers, folders and pipes for files, names that are not UTF-8, limits of the shell."""
import json
import os
import subprocess
import unittest

from harness import BINARY, MODELS, CliTest

NET = MODELS / "small_net.fir"


def shell(command, **environment):
    return subprocess.run(["bash", "-c", command], capture_output=True, env={**os.environ, "O": BINARY, "NET": str(NET), **environment}, timeout=100)


class Hostile(CliTest):
    def model(self):
        path = self.folder / "m.onnx"
        self.ok("zoo", "mobilenet_v2", "--resolution", "32", "--width", "0.1", "-o", path)
        return path

    def test_empty_values_are_refused(self):
        for arguments in (("fuse", NET, "-o", ""), ("compile", NET, "--target", ""), ("run", NET, "--input", ""), ("inspect", "")):
            self.fails(2, *arguments, says=["is empty"])
        self.fails(2, "explain", NET, "--node=", says=["NAME missing"])

    def test_negative_numbers_are_refused(self):
        for arguments in (("compile", NET, "--threads", "-1"), ("explain", NET, "--top", "-1"), ("run", NET, "--seed=-1"),
                          ("bench", NET, "--kernels", "random", "--count", "-3"), ("compare", NET, "--output-tolerance", "-1e-3")):
            self.fails(2, *arguments, says=["E0401", "-"])
        self.fails(2, "compile", NET, "--threads", "9" * 30, says=["too large"])
        self.fails(2, "bench", NET, "--duration", "1e30s", says=["is not a duration"])

    def test_outputs_are_refused_before_the_work(self):
        (self.folder / "d").mkdir()
        for flag, verb in (("-o", "compile"), ("-o", "fuse"), ("--plan-out", "fuse"), ("--trace", "profile"), ("-o", "report"), ("-o", "optimize")):
            self.fails(5, verb, "zoo:vit_b_16", flag, "d", says=["that is a folder"], cwd=self.folder, timeout=20)
            self.fails(5, verb, "zoo:vit_b_16", flag, "none/x", says=["no folder 'none'", "mkdir"], cwd=self.folder, timeout=20)
        self.fails(2, "profile", NET, "--trace", "t.json", "--exportProfile", "t.json", says=["name the same file"], cwd=self.folder)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["d"])

    def test_folders_that_cannot_be_made_are_no_internal_error(self):
        for flag in ("--dump-dir", "--emit"):
            place = ("llvm", "/proc/x") if flag == "--emit" else ("/proc/x",)
            self.fails(5, "compile", NET, "-o", self.folder / "x.opf", flag, *place, says=["E0702", "/proc/x"])
        self.fails(5, "run", NET, "-o", "/proc/x", says=["E0702", "/proc/x"])

    def test_a_device_is_written_and_not_read_back(self):
        done = self.ok("fuse", NET, "-o", "/dev/null")
        self.assertIn("not read back", done.err)

    def test_pipes_and_folders_are_called_what_they_are(self):
        self.fails(5, "inspect", "/dev/null", says=["not a regular file"])
        done = shell('"$O" inspect <(cat "$NET")')
        self.assertEqual((done.returncode, b"is a pipe or device" in done.stderr), (5, True), done)
        self.fails(5, "fuse", NET, "--plan", self.folder, says=["is a folder"])
        empty = self.folder / "empty.json"
        empty.touch()
        self.fails(5, "fuse", NET, "--plan", empty, says=["E0703"])
        notes = self.folder / "notes.onnx"
        notes.write_text("These are notes about a model, and no model at all: 70 bytes and more.\n")
        self.fails(3, "inspect", notes, says=["the file is text"])

    def test_inputs_by_name_only(self):
        self.fails(2, "run", NET, "--input", "nope=1", says=["no tensor 'nope'"])
        self.fails(5, "run", NET, "--input", "nope", says=["there is no file 'nope'", "NAME=FILE"])

    def test_reduce_needs_a_command_that_starts(self):
        done = self.fails(2, "reduce", NET, "--fails", "no_such_command_here {}", says=["cannot be run"], cwd=self.folder)
        self.assertEqual(list(self.folder.iterdir()), [], done)

    def test_names_that_are_not_utf8(self):
        path = self.model()
        name = b"/features/features.0/features.0.0/Conv"
        path.write_bytes(path.read_bytes().replace(name, b"/f\xff\xfe<b>\"'&\xe2\x82</script>".ljust(len(name), b"v")))
        for arguments in (("explain", path, "--json"), ("explain", path, "--json-lines"), ("fuse", path, "--json"), ("check", path, "--json"),
                          ("compile", path, "-o", self.folder / "m.opf", "--json"), ("inspect", self.folder / "m.opf", "--json")):
            done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, timeout=100)
            if arguments[2:] == ("--json-lines",) and b"has no flag" in done.stderr:
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            text = done.stdout.decode()  # UTF-8
            [json.loads(line) for line in text.splitlines()] if "--json-lines" in arguments else json.loads(text)
        for form in ("html", "svg", "dot", "json"):
            still = () if form in ("svg", "dot") else ("--no-measure", "--no-code")
            self.ok("report", path, "--format", form, *still, "-o", self.folder / f"r.{form}")
            text = (self.folder / f"r.{form}").read_bytes().decode()
            if form in ("html", "svg"):
                self.assertNotIn("&\ufffd</script>", text)

    def test_a_file_limit_is_an_error_and_leaves_nothing(self):
        done = shell(f'cd {self.folder}; ulimit -f 20; "$O" zoo mobilenet_v2 -o m.onnx')
        self.assertEqual((done.returncode, b"File too large" in done.stderr), (5, True), done)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_code_for_another_cpu_is_compiled_but_not_run(self):
        targets = json.loads(self.ok("targets", "--json").out)["targets"]
        foreign = [t["name"] for t in targets if t.get("lacking_here")]
        if not foreign:
            self.skipTest("this machine runs code for every CPU target")
        for verb in ("run", "compare", "bench", "profile"):
            self.fails(4, verb, NET, "--target", foreign[0], says=["E0601", foreign[0], "which this machine lacks", "--target host"])
        self.ok("compile", NET, "--target", foreign[0], "-o", self.folder / "foreign.opf")

    def test_a_closed_stderr_is_no_failure(self):
        done = shell(f'"$O" compile "$NET" -o {self.folder}/m.opf 2>&-')
        self.assertEqual((done.returncode, (self.folder / "m.opf").exists()), (0, True), done)

    def test_without_home_and_with_odd_terminals(self):
        for environment in ({"HOME": ""}, {"HOME": "/nonexistent", "XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "/dev/null"}, {"COLUMNS": "20"},
                            {"COLUMNS": "-1"}, {"LC_ALL": "xx_YY"}, {"TMPDIR": "/nonexistent"}):
            self.ok("compile", NET, "-o", self.folder / "m.opf", environment=environment)


if __name__ == "__main__":
    unittest.main()
