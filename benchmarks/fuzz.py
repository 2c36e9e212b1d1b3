"""Fuzz what a node reads, by coverage: frames, log, checkpoint, mesh.toml, JSON, tables, archives.

    python benchmarks/fuzz.py [--seconds N] [--seed N] [--targets NAME ...] [--out FOLDER]

The targets are those of tests/support/fuzzing.py, of which tests/attacks/test_fuzz.py runs each for
a second. Printed for each are the executions, the lines of its files that were reached, of those
with code, the inputs that are kept because they reach more, and the findings. Each finding is
printed, its bytes are written to the folder, and the exit code is 1.
"""

import argparse
import hashlib
import logging
import sys
import time
from pathlib import Path

from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from fuzzing import SOURCE, Fuzzer, targets

LEAST = 100  # executions between two looks at the clock


def lines_of(name):
    """The lines of a file of the package that can be reached inside of functions."""
    code = [compile((SOURCE / name).read_text(), name, "exec")]
    found = set()
    for each in code:
        inner = [const for const in each.co_consts if hasattr(const, "co_lines")]
        code += inner
        if each is not code[0]:
            found |= {line for *_, line in each.co_lines() if line}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", nargs="*", help="default: all")
    parser.add_argument("--out", type=Path, default=Path("domkl-out") / "fuzz")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    known, n_findings = targets(), 0
    chosen = {name: known[name] for name in args.targets or known}
    print(f"seed {args.seed}, {args.seconds:g} s each")
    print(f"{'target':12} {'executions':>10} {'lines':>6} {'of':>6} {'kept':>6} {'findings':>9}")
    for name, target in tqdm(chosen.items(), unit="target", file=sys.stderr):
        fuzzer, end = Fuzzer(target, args.seed), time.monotonic() + args.seconds
        while time.monotonic() < end:
            fuzzer.run(LEAST)
        n_lines = sum(len(lines_of(each)) for each in target.files)
        counts = len(fuzzer.lines), n_lines, len(fuzzer.corpus), len(fuzzer.findings)
        print("{:12} {:10} {:6} {:6} {:6} {:9}".format(name, fuzzer.n, *counts), flush=True)
        for finding in fuzzer.findings.values():
            args.out.mkdir(parents=True, exist_ok=True)
            path = args.out / f"{name}-{hashlib.sha256(finding.data).hexdigest()[:12]}"
            path.write_bytes(finding.data)
            print(f"\n{path}\n{finding.error}")
        n_findings += len(fuzzer.findings)
    return int(n_findings > 0)


if __name__ == "__main__":
    sys.exit(main())
