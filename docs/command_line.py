"""Make the transcript of guide/command_line.md: run what is shown there, note what it says.

``python docs/command_line.py`` writes the page anew; a test runs the commands and compares. The
table is drawn, so that nobody needs to download anything.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

PAGE = Path(__file__).parent / "guide" / "command_line.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def make_orchard(folder, n_rows=1000):
    """A table as users have them: names, gaps, a constant, a number for every row."""
    X, codes = make_classification(
        n_rows, 17, n_informative=8, n_classes=3, n_clusters_per_class=3, class_sep=1.4,
        random_state=0,
    )  # fmt: skip
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(np.round(X, 3), columns=[f"m{j:02d}" for j in range(1, 18)])
    for name in ("m03", "m11"):
        frame.loc[rng.choice(n_rows, 40, replace=False), name] = np.nan
    frame.insert(0, "tree", np.arange(1, n_rows + 1))
    frame.insert(1, "orchard", rng.choice(["north", "south", "river"], n_rows))
    frame.insert(2, "unit", "mm")
    frame["fruit"] = np.array(["apple", "pear", "quince"])[codes]
    frame.to_csv(folder / "orchard.csv", index=False)
    frame.drop(columns="fruit").head(3).to_csv(folder / "new.csv", index=False)


def run(command, folder):
    """What a command prints, in a terminal of 80 columns."""
    environment = os.environ | {
        "COLUMNS": "80",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    shell = f'kernelmetric() {{ "{sys.executable}" -m kernelmetric "$@"; }}; {command}'
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(
        ["bash", "-c", shell], cwd=folder, env=environment, check=False, **streams
    ).stdout


def transcript(block, folder):
    """A block of the page with every command run anew."""
    lines = []
    for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
        output = run(command, folder)
        lines += [f"$ {command}", *(line.rstrip() for line in output.rstrip().splitlines())]
    return "\n".join(lines) + "\n"


def main():
    """Write the page anew."""
    with tempfile.TemporaryDirectory() as folder:
        make_orchard(Path(folder))
        text = PAGE.read_text(encoding="utf-8")
        text = BLOCK.sub(lambda m: f"```console\n{transcript(m[1], Path(folder))}```", text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
