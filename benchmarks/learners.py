"""metric-learn's learners on the splits of the studies ``learners`` and ``learners-regression``.

``python benchmarks/learners.py path/to/python``, that of an environment with metric-learn, writes
``reproduction/studies/learners-metric-learn.jsonl`` anew. 1-NN accuracy, and for MLKR the R² of ten
neighbours.
"""

import argparse
import json
import subprocess
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np

from kernelmetric.demo import Split
from reproduction.learners import LEARNERS, REGRESSION
from reproduction.multimodal import later_split

HERE = Path(__file__).parent
OUT = HERE.parent / "reproduction" / "studies" / "learners-metric-learn.jsonl"


def run_peers(python, problem, kind, n_splits):
    """Yield the cells of metric-learn's learners, made in a process of their own."""
    splits = [later_split(problem, seed) for seed in range(n_splits)]
    with NamedTemporaryFile(suffix=".npz") as file:
        arrays = {f"{k}{i}": getattr(s, k) for i, s in enumerate(splits) for k in Split._fields}
        np.savez(file.name, **arrays)
        lines = subprocess.run(
            [python, HERE / "peer_learners.py", file.name, str(n_splits), kind],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    for line in lines.splitlines():
        yield {"dataset": problem.name, **json.loads(line)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="a Python with metric-learn")
    parser.add_argument("--splits", type=int, default=3)
    arguments = parser.parse_args()
    with OUT.open("w", encoding="utf-8") as file:
        for table, kind in ((LEARNERS, "classes"), (REGRESSION, "regression")):
            for problem in table.problems:
                for cell in run_peers(arguments.python, problem, kind, arguments.splits):
                    print(*cell.values(), flush=True)
                    file.write(json.dumps(cell) + "\n")


if __name__ == "__main__":
    main()
