#!/usr/bin/env python3
"""The documentation as a site with search and the references of C, C++ and Python:  ./dev docs  ->  build/site/index.html

Needs doxygen and a Python with mkdocs-material and mkdocstrings (./dev docs sees to both). A warning of any of them fails the
command: a broken link, an unknown anchor, a comment that does not fit its declaration.
"""
import argparse
import json
import logging
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)]*)?\)")

PAGES = {
    "Start": ["README.md", "docs/tutorial.md", "docs/choosing.md", "docs/troubleshooting.md", "docs/glossary.md", "docs/tried.md", "CHANGELOG.md"],
    "Use it": ["docs/cli.md", "docs/api.md", "docs/c.md", "docs/python.md", "docs/onnxruntime.md", "docs/report.md", "docs/json.md", "docs/errors.md", "docs/formats.md",
               "examples/README.md"],
    "Reference": ["reference/cpp.md", "reference/python.md"],
}

CPP_PAGE = """# C and C++

Every public header, by Doxygen: <a href="../cpp/annotated.html">types</a>, <a href="../cpp/files.html">headers</a>,
<a href="../cpp/opfuse_8h.html">the C API</a>.
"""
PYTHON_PAGE = """# Python

::: opfuse
"""

DOXYGEN = """
PROJECT_NAME = opfuse
PROJECT_NUMBER = {version}
INPUT = {root}/include/opfuse
OUTPUT_DIRECTORY = {out}
HTML_OUTPUT = cpp
GENERATE_LATEX = NO
EXTRACT_ALL = YES
JAVADOC_AUTOBRIEF = YES
ENABLE_PREPROCESSING = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = OPFUSE_API= OPFUSE_C_API= __cplusplus
STRIP_FROM_PATH = {root}/include
WARN_IF_UNDOCUMENTED = NO
WARN_AS_ERROR = FAIL_ON_WARNINGS
HAVE_DOT = NO
ALIASES = NODE=&#64;NODE
QUIET = YES
"""


def version():
    return re.search(r"project\(opfuse VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def tracked(pattern):
    listed = subprocess.run(["git", "ls-files", pattern], cwd=ROOT, check=True, text=True, capture_output=True).stdout
    return [pathlib.Path(line) for line in listed.splitlines()]


def stage_page(path, staged):
    """A page with its links: files that it names go along, a folder becomes its README or plain text."""
    def link(match):
        target, anchor = match[1], match[2] or ""
        if ":" in target:
            return match[0]
        absolute = (ROOT / path.parent / target).resolve()
        if absolute.is_dir():
            return f"]({target.rstrip('/')}/README.md)" if (absolute / "README.md").exists() else f"]({target.rstrip('/')}/index.md)"
        if absolute.is_file() and absolute.suffix != ".md":
            copy = staged / absolute.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(absolute, copy)
        return f"]({target}{anchor})"
    fenced = re.split(r"(^```.*?^```$)", (ROOT / path).read_text(), flags=re.M | re.S)
    text = "".join(part if i % 2 else LINK.sub(link, part).replace("](%", "]&#40;%") for i, part in enumerate(fenced))
    out = staged / path
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text)
    for target in re.findall(r"\]\(([^)\s#]+)/index\.md\)", text):
        folder = (out.parent / target)
        source = ROOT / path.parent / target
        folder.mkdir(parents=True, exist_ok=True)
        names = sorted(file.name for file in source.iterdir() if file.is_file())
        (folder / "index.md").write_text(f"# {source.resolve().name}\n\n" + "\n".join(f"* [{name}]({name})" for name in names) + "\n")
        for name in names:
            shutil.copy(source / name, folder / name)


def stage(staged, stub):
    shutil.rmtree(staged, ignore_errors=True)
    pages = [path for path in tracked("*.md") if not str(path).startswith((".github", "tests/"))]
    for path in pages:
        stage_page(path, staged)
    reference = staged / "reference"
    reference.mkdir()
    (reference / "cpp.md").write_text(CPP_PAGE)
    shutil.copytree(ROOT / "python" / "opfuse", staged.parent / "site-python" / "opfuse", dirs_exist_ok=True)
    if stub:
        shutil.copy(stub, staged.parent / "site-python" / "opfuse" / "_core.pyi")
    (reference / "python.md").write_text(PYTHON_PAGE)
    return pages


def configuration(pages, staged, site):
    listed = {page for section in PAGES.values() for page in section}
    rest = {}
    for path in pages:
        if str(path) not in listed:
            section = {"docs": "How it works", "internals": "Internals", "bench": "Measurements"}.get(path.parent.name, "Work on it")
            rest.setdefault(section, []).append(str(path))
    return {"site_name": f"opfuse {version()}", "docs_dir": str(staged), "site_dir": str(site), "use_directory_urls": False, "strict": True,
            "theme": {"name": "material", "font": False, "features": ["navigation.sections", "content.code.copy"],
                      "palette": [{"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "blue grey"},
                                  {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "blue grey"}]},
            "plugins": ["search", "offline", {"mkdocstrings": {"handlers": {"python": {"paths": [str(staged.parent / "site-python")], "options": {
                "show_source": False, "show_root_heading": True, "members_order": "source", "show_if_no_docstring": True,
                "heading_level": 2, "filters": ["!^_[^_]", "!^__all__$"], "allow_inspection": False}}}}}],
            "markdown_extensions": ["tables", "toc", "attr_list", "admonition", "pymdownx.superfences", "pymdownx.highlight"],
            "validation": {"links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"}, "nav": {"omitted_files": "info"}},
            "nav": [{title: names} for title, names in [*PAGES.items(), *rest.items()]]}


def build_pages(config):
    os.environ["NO_MKDOCS_2_WARNING"] = "1"
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from pymdownx.slugs import slugify
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
    loaded = load_config(str(config))
    loaded.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")  # as GitHub does: two hyphens stay two
    loaded.plugins.on_startup(command="build", dirty=False)
    build(loaded)  # strict: raises after warnings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=pathlib.Path, default=ROOT / "build" / "site")
    parser.add_argument("--stub", type=pathlib.Path, help="_core.pyi of a built module: the classes of the Python reference")
    options = parser.parse_args()
    site = options.site.resolve()
    staged = site.parent / "site-source"
    pages = stage(staged, options.stub)
    config = site.parent / "mkdocs.yml"
    config.write_text(json.dumps(configuration(pages, staged, site)))
    build_pages(config)
    doxyfile = DOXYGEN.format(version=version(), root=ROOT, out=site)
    subprocess.run(["doxygen", "-"], input=doxyfile, text=True, check=True)
    print(f"{len(pages)} pages: {site}/index.html" + ("" if options.stub else "; the Python reference lacks the compiled classes (--stub)"))


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failed:
        sys.exit(f"make_site: {failed.cmd[0]} failed, see above")
