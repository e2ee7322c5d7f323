#!/usr/bin/env python3
"""Writes docs/errors.md from src/base/error_codes.def; with --check it only says whether the page is up to date."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/errors.md"
# (first digits, section, exit status of the command line)
CLASSES = [("E01", "Reading a model", 3), ("E02", "Shapes and types", 3), ("E03", "Not supported", 3), ("E04", "Options and names", 2),
           ("E05", "Compiling", 3), ("E06", "Running", 4), ("E07", "Files", 5), ("E70", "Bugs in opfuse", 70)]
HEAD = """# Error codes

Written by `docs/make_errors.py` from `src/base/error_codes.def`; `opfuse errors` prints the same table.

Every failure is one `opfuse::Error` with a stable code and name, the node and its operands where there is one, and a hint:

```
$ opfuse fuse bad.fir
error[E0203] channel_mismatch: input has 3 channels but the weights expect 4
  --> bad.fir, node "/conv1/Conv" (Conv, opset 17)
      x : f32[1,3,8,8]   graph input "x"
      w : f32[8,4,3,3]   constant "w"
  while: reading line 3
  hint:  weights are [out, in/group, kernel...]; group is 1
repeat: opfuse fuse bad.fir
```

Codes never change their meaning. "Does not match" and "not profitable" are not errors: they are reasons inside the plan
([fusion.md](fusion.md)). The last line of every failure of the command line is the command that repeats it.
"""


def page():
    rows = re.findall(r'^OPFUSE_ERROR\("(E\d+)", (\w+), "(.*)"\)$', (ROOT / "src/base/error_codes.def").read_text(), re.M)
    parts, left = [HEAD], [code for code, _, _ in rows]
    for prefix, title, status in CLASSES:
        parts.append(f"\n## {title}\n\nExit status {status}.\n\n| code | name | meaning |\n|---|---|---|\n")
        for code, name, doc in rows:
            if code.startswith(prefix):
                note = " Exit status 130." if name == "cancelled" else ""
                parts.append(f"| {code} | `{name}` | {doc}{note} |\n")
                left.remove(code)
    if left:
        sys.exit(f"docs/make_errors.py: no section for {', '.join(left)}")
    return "".join(parts)


def main():
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text() != page():
            sys.exit("docs/errors.md is out of date: run docs/make_errors.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PAGE.write_text(page())


if __name__ == "__main__":
    main()
