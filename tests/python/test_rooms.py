"""The order of rooms, and sizes of files: what a reader of this code may rely on."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Each room may include itself and those before it.
ROOMS = [
    "core",
    "ops",
    "graph",
    "frontend",
    "fuse",
    "kernel",
    "codegen",
    "jit",
    "runtime",
    "reference",
    "numerics",
    "profile",
    "repro",
    "perfdb",
]
# Headers that say what a room hands on, and nothing else: they may be read from anywhere above core.
CONTRACTS: set[str] = set()
SOURCES = [*ROOT.glob("fuselab/**/*.cpp"), *ROOT.glob("fuselab/**/*.h")]
WRITTEN = [
    p
    for pattern in ("fuselab/**/*", "cli/**/*", "python/**/*", "tests/**/*", "bench/**/*", "examples/**/*", "scripts/*")
    for p in ROOT.glob(pattern)
    if p.suffix in {".cpp", ".h", ".py", ".sh"}
]


def includes(path: Path) -> list[tuple[int, str]]:
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := re.match(r'\s*#\s*include\s*"([^"]+)"', line):
            found.append((number, match.group(1)))
    return found


def test_every_folder_is_a_room():
    assert {p.parent.relative_to(ROOT / "fuselab").parts[0] for p in SOURCES} <= set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_room_depends_downwards_only(room):
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    wrong = []
    for path in SOURCES:
        if path.relative_to(ROOT / "fuselab").parts[0] != room:
            continue
        for number, name in includes(path):
            parts = name.split("/")
            if parts[0] in {"cli", "python"} or (parts[0] == "fuselab" and parts[1] not in allowed and name not in CONTRACTS):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {room} may not include {name}")
    assert not wrong, "\n".join(wrong)


def test_own_headers_are_included_by_full_path():
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {name}"
        for path in SOURCES
        for number, name in includes(path)
        if not name.startswith("fuselab/") or not (ROOT / name).is_file()
    ]
    assert not wrong, "\n".join(wrong)


def test_no_file_is_longer_than_800_lines():
    lengths = {p.relative_to(ROOT): len(p.read_text(encoding="utf-8").splitlines()) for p in WRITTEN}
    too_long = {str(p): n for p, n in lengths.items() if n > 800}
    assert not too_long


def test_headers_open_with_what_they_are_for():
    headers = [p for p in SOURCES if p.suffix == ".h"]
    wrong = [str(p.relative_to(ROOT)) for p in headers if not p.read_text(encoding="utf-8").startswith("// ")]
    assert not wrong
    once = [str(p.relative_to(ROOT)) for p in headers if "#pragma once" not in p.read_text(encoding="utf-8")]
    assert not once
