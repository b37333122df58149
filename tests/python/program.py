"""Where the program `fuselab` is: FUSELAB_PROGRAM, else the latest build, else the installed one."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def find_program():
    named = os.environ.get("FUSELAB_PROGRAM")
    built = sorted(ROOT.glob("build/*/bin/fuselab"), key=os.path.getmtime, reverse=True)
    places = [named] if named else [*built, ROOT / ".venv/bin/fuselab"]
    return next((str(p) for p in places if p and pathlib.Path(p).exists()), None)
