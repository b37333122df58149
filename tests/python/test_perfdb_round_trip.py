"""Files of the database go through the program unchanged, and a killed write loses nothing (D-03, D-65)."""
import random
import subprocess
import time

import pytest

from perfdb_support import SHARED, fuselab
from program import find_program

FILES = sorted(p.relative_to(SHARED) for p in (SHARED / "data").rglob("*.csv")) if SHARED.exists() else []


def rewrite(source, target, *args):
    fuselab("db", "rewrite", str(source), str(target), *args)
    return target.read_bytes()


@pytest.mark.skipif(not FILES, reason="the reference data is not here")
def test_d03_every_reference_file_byte_for_byte(tmp_path):
    wrong = [str(f) for f in FILES if rewrite(SHARED / f, tmp_path / "copy.csv") != (SHARED / f).read_bytes()]
    assert not wrong


@pytest.mark.skipif(not FILES, reason="the reference data is not here")
def test_d03_every_reference_file_with_every_cell_changed_and_restored(tmp_path):
    wrong = [str(f) for f in FILES if rewrite(SHARED / f, tmp_path / "copy.csv", "--touch") != (SHARED / f).read_bytes()]
    assert not wrong


@pytest.mark.parametrize("touch", [(), ("--touch",)])
@pytest.mark.parametrize("text", [
    b"\xef\xbb\xbfa,b\r\n1,2\r\n", b"a,b\n1,2", b'a,b\n"1","2"\n', b'"a","b"\n"""1,2;3""",x\n', b"a,b\n\n1,2\n\n\n", b"a\r1\r2\r",
    b'a,b\n"x\ny",2\r\n',
    b"a,b", b"a,b\r\n1,\xe4\xb8\xad\r\n", b"a,b\n,\n",
])
def test_oddities_stay(tmp_path, text, touch):
    (tmp_path / "f.csv").write_bytes(text)
    assert rewrite(tmp_path / "f.csv", tmp_path / "copy.csv", *touch) == text


def test_a_killed_write_loses_nothing(tmp_path):
    program = find_program()
    if program is None:
        pytest.skip("the program fuselab is not built")
    path, rng = tmp_path / "f.csv", random.Random(5)
    text = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(200_000))
    path.write_bytes(text)
    for _ in range(25):
        run = subprocess.Popen([program, "db", "rewrite", str(path), "--touch"])
        time.sleep(rng.uniform(0, 0.25))
        run.kill()
        run.wait()
        assert path.read_bytes() == text
