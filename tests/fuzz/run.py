"""Builds the graph fuzzer and runs it; arguments go to it: run.py --count 1000 --seed 1."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "wheel"


def main():
    env = dict(os.environ, CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1")
    subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, "-DFUSELAB_BUILD_TESTS=ON"], check=True, stdout=subprocess.DEVNULL, env=env)
    subprocess.run(["cmake", "--build", BUILD, "--target", "fuselab_fuzz"], check=True, stdout=subprocess.DEVNULL, env=env)
    return subprocess.run([BUILD / "fuselab_fuzz", *sys.argv[1:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
