"""`python -m perf.budgets`: the published rerun budgets and what the command line says for them."""

from __future__ import annotations

import json
import sys

from perf.measure import ROOT, evalnoise


def main() -> int:
    figures = json.loads((ROOT / "tests" / "reference" / "noise_floor.json").read_text())
    wrong = 0
    for row in figures["conditions"]:
        said = json.loads(evalnoise("budget", "--w", str(row["w"]), "--tasks", str(row["tasks"]), "--delta", "0.02", "--json"))[
            "runs"
        ]
        wrong += said != row["runs"]
        print(
            f"{row['benchmark']:<11} {row['condition']:<14} w {row['w']:<8} N {row['tasks']}: {said} runs (published {row['runs']})"
        )
    return wrong


if __name__ == "__main__":
    sys.exit(main())
