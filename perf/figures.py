"""`make figures`: every measurement that the documentation speaks of, whole, one after the other."""

from __future__ import annotations

import subprocess
import sys

from perf.measure import ROOT

PARTS = (
    "demo",
    "oracle_coverage",
    "cruxeval",
    "canonicals",
    "agreement",
    "verify",
    "flips",
    "soak",
    "budgets",
    "kills",
    "paid",
    "generate",
    "bootstrap",
    "analyse",
    "pairs",
    "coverage",
)


def main() -> int:
    bad = []
    for part in sys.argv[1:] or PARTS:
        print(f"\n######## python -m perf.{part}", flush=True)
        if subprocess.run([sys.executable, "-m", f"perf.{part}"], cwd=ROOT, check=False).returncode:
            bad.append(part)
    print(f"\nfigures that are not as they should be: {', '.join(bad) or 'none'}")
    return len(bad)


if __name__ == "__main__":
    sys.exit(main())
