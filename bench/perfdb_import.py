"""Time and memory of `fuselab db import` on a profile of a million rows, made here.

    python bench/perfdb_import.py [--rows 1000000] [--groups 28000] [--program fuselab]

Prints wall and CPU seconds, the largest resident memory, and the rate. The file lies in a temporary folder and is deleted."""
import argparse
import csv
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

HEADER = ["Step Id", "Device_id", "Model ID", "Task ID", "Stream ID", "Name", "Type", "OP State", "Accelerator Core", "Start Time(us)",
          "Duration(us)", "Wait Time(us)", "Block Num", "Mix Block Num", "HF32 Eligible", "Input Shapes", "Input Data Types",
          "Input Formats", "Output Shapes", "Output Data Types", "Output Formats", "Context ID", "aicore_time(us)", "aic_total_cycles",
          "aic_mac_time(us)", "aic_mac_ratio", "aic_scalar_time(us)", "aic_scalar_ratio", "aic_mte1_time(us)", "aic_mte1_ratio",
          "aic_mte2_time(us)", "aic_mte2_ratio", "aic_fixpipe_time(us)", "aic_fixpipe_ratio", "aic_icache_miss_rate", "aiv_time(us)",
          "aiv_total_cycles", "aiv_vec_time(us)", "aiv_vec_ratio", "aiv_scalar_time(us)", "aiv_scalar_ratio", "aiv_mte2_time(us)",
          "aiv_mte2_ratio", "aiv_mte3_time(us)", "aiv_mte3_ratio", "aiv_icache_miss_rate", "cube_utilization(%)"]
KINDS = ["MatMulV2", "QuantBatchMatmulV3", "RmsNorm", "SwiGlu", "DynamicQuant", "GatherV2", "Cast", "Add"]


def write_profile(path, rows, groups, seed=1):
    """`rows` launches of `groups` signatures in the header that torch_npu writes, counters and all."""
    rng = random.Random(seed)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    shapes = []
    for g in range(groups):
        m, k, n = rng.randrange(1, 8192), 64 * rng.randrange(1, 128), 64 * rng.randrange(1, 128)
        shapes.append((KINDS[g % len(KINDS)], f'"{m},{k};{k},{n}"', f'"{m},{n}"', 1 + m * 1e-2))
    start = 1736413971558972.912
    with open(path, "w") as f:
        writer.writerow(HEADER)
        for i in range(rows):
            kind, inputs, outputs, us = shapes[rng.randrange(groups)]
            us *= rng.uniform(0.9, 1.1)
            start += us
            counters = [f"{us * 0.9:.3f}", str(int(us * 1800)), *(f"{us * 0.01 * j:.3f}" for j in range(1, 24))]
            writer.writerow([1, 0, 4294967295, i % 65536, 2, f"{kind}_{i}", kind, "dynamic", "AI_CORE", f"{start:.3f}\t", f"{us:.3f}", "0.4",
                             24, 0, "NO", inputs, "DT_BF16;DT_BF16", "ND;ND", outputs, "DT_BF16", "ND", "N/A", *counters])
            if i % 20000 == 0:
                f.write(out.getvalue())
                out.seek(0)
                out.truncate()
        f.write(out.getvalue())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=28_000)
    parser.add_argument("--program", default="fuselab")
    parser.add_argument("--keep", help="leave the profile here and use it again")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        profile = pathlib.Path(args.keep) if args.keep else folder / "kernel_details.csv"
        if not profile.exists():
            print("writing the profile ...", file=sys.stderr)
            write_profile(profile, args.rows, args.groups)
        with open(profile, "rb") as f:  # into the page cache; in pieces, because a child begins with its parent's resident memory
            while f.read(1 << 20):
                pass
        result = measure([args.program, "db", "import", str(profile), "--database-path", str(folder / "db"), "--json"])
        result |= {"bytes": profile.stat().st_size, "rows": args.rows}
        if args.json:
            print(json.dumps(result))
        else:
            print("{rows} rows, {mb:.0f} MB: {wall:.2f} s ({cpu:.2f} s of CPU), {rss:.0f} MB resident, {rate:.0f} MB/s".format(
                mb=result["bytes"] / 1e6, rate=result["bytes"] / 1e6 / result["wall"], **result))
    finally:
        shutil.rmtree(folder)


def measure(command):
    """Wall and CPU seconds and the largest resident memory (MB) of a command."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status != 0:
        raise SystemExit(f"{command[0]} failed")
    return {"wall": time.perf_counter() - begin, "cpu": usage.ru_utime + usage.ru_stime, "rss": usage.ru_maxrss / 1024}


if __name__ == "__main__":
    main()
