"""Links, files and tests that the documentation names must exist, and the checklist must name every row. Prints what does not, and exits 1."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FILE = re.compile(r"(?<![\w./-])((?:fuselab|cli|python|tests|bench|examples|scripts|docs)/[\w./-]*[\w/])")
CPP_TEST = re.compile(r"`([A-Z][A-Za-z]+|flags)\.([A-Z]\w+)`")
PYTHON_TEST = re.compile(r"`(test_[a-z0-9_]+)`")


def anchors(text):
    """GitHub's anchors of a page's headings."""
    found = set()
    for title in re.findall(r"^#+ (.*)$", text, re.M):
        found.add(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-"))
    return found


def prose(text):
    """The page without code blocks."""
    lines, inside = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside
        elif not inside and not line.startswith("    "):
            lines.append(line)
    return "\n".join(lines)


ROWS = {"P": 71, "R": 118}  # rows of the documents this project follows: each must be in docs/checklist.md with what shows it
ROW = re.compile(r"([A-Z])-(\d+)(?:\s*(?:to|–)\s*[A-Z]-(\d+))?")


def checklist(text):
    """Rows that the checklist does not name, and lines whose last cell shows nothing."""
    named, wrong = set(), []
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if not line.startswith("| ") or not ROW.match(cells[0]):
            continue
        for group, first, last in ROW.findall(cells[0]):
            named |= {(group, n) for n in range(int(first), int(last or first) + 1)}
        if not cells[-1]:
            wrong.append(f"{cells[0]} is shown by nothing")
    return wrong + [f"row {g}-{n:02} is missing" for g, count in ROWS.items() for n in range(1, count + 1) if (g, n) not in named]


def main():
    unit = "\n".join(p.read_text(encoding="utf-8") for p in ROOT.glob("tests/unit/*.cpp"))
    cpp_tests = {f"{a}.{b}" for a, b in re.findall(r"\b(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+)", unit)}
    python = "\n".join(p.read_text(encoding="utf-8") for p in ROOT.glob("tests/python/**/*.py"))
    python_tests = set(re.findall(r"def (test_\w+)\(", python))
    wrong = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        words = prose(text)
        where = page.relative_to(ROOT)
        for target in LINK.findall(words):
            if target.startswith(("http://", "https://")):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists():
                wrong.append(f"{where}: link to {target}: no such file")
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
                wrong.append(f"{where}: link to {target}: no such heading")
        for name in FILE.findall(words):
            if "*" not in name and not (ROOT / name).exists():
                wrong.append(f"{where}: {name} does not exist")
        wrong += [f"{where}: no C++ test {a}.{b}" for a, b in CPP_TEST.findall(words) if f"{a}.{b}" not in cpp_tests]
        wrong += [f"{where}: no Python test {name}" for name in PYTHON_TEST.findall(words) if name not in python_tests]
    wrong += [f"docs/checklist.md: {w}" for w in checklist((ROOT / "docs/checklist.md").read_text(encoding="utf-8"))]
    print("\n".join(wrong) if wrong else f"docs: {len(PAGES)} pages, every link, file and test they name exists")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
