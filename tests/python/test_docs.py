"""The documentation: what is generated is up to date, what it names exists, its examples run."""
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")  # before fuselab, which then registers the backend

import fuselab
from fuselab import _core
from program import ROOT, find_program

PROGRAM = find_program()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language):
    """(page:line, text) of the fenced blocks of a language."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
            if match.group(1) == language:
                yield f"{page.name}:{text[:match.start()].count(chr(10)) + 1}", match.group(2)


def test_links_files_and_tests_exist():
    done = subprocess.run([sys.executable, ROOT / "scripts/check_docs.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(PROGRAM is None, reason="the program is not built (set FUSELAB_PROGRAM)")
def test_generated_pages_are_what_the_program_makes():
    done = subprocess.run([ROOT / "scripts/docs.sh", "--check"], capture_output=True, text=True, check=False,
                          env=dict(os.environ, FUSELAB=PROGRAM))
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]


def test_examples_in_python_run():
    found = list(blocks("python"))
    assert found
    for place, text in found:
        try:
            exec(compile(text, place, "exec"), {"__name__": "example"})
        except Exception as e:
            raise AssertionError(f"{place}: {type(e).__name__}: {e}") from e


def test_graphs_parse():
    graphs = [(place, text) for place, text in blocks("") if re.match(r"\s*(#.*\n\s*)*graph \w+\(", text)]
    graphs += [(p.name, p.read_text(encoding="utf-8")) for p in sorted((ROOT / "examples").glob("*.graph"))]
    assert len(graphs) >= 3
    for place, text in graphs:
        assert _core.parse_graph(_core.parse_graph(text, place), place)


def test_every_option_of_the_backend_is_documented():
    from fuselab.torch.options import KNOWN

    page = (ROOT / "docs/getting-started.md").read_text(encoding="utf-8")
    assert [name for name in KNOWN if f"`{name}`" not in page] == []


def test_readme_shows_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text and "make test" in text
    assert fuselab.__doc__
