"""How long ``import kernelmetric`` takes beside ``import sklearn.neighbors``, on which it stands.

Each import runs in its own fresh interpreter, the two in turn, so that a busy moment of the machine
hits both. Prints the two medians, less that of an empty interpreter, and their ratio.
"""

import statistics
import subprocess
import sys
import time

STATEMENTS = {
    "nothing": "pass",
    "sklearn.neighbors": "import sklearn.neighbors",
    "kernelmetric": "import kernelmetric",
}
RUNS = 7


def seconds(statement):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def main():
    for statement in STATEMENTS.values():  # bytecode written, files in the page cache
        seconds(statement)
    rounds = [{name: seconds(code) for name, code in STATEMENTS.items()} for _ in range(RUNS)]
    median = {name: statistics.median(times[name] for times in rounds) for name in STATEMENTS}
    reference = median["sklearn.neighbors"] - median["nothing"]
    ours = median["kernelmetric"] - median["nothing"]
    print(f"sklearn.neighbors  {reference:.3f} s")
    print(f"kernelmetric       {ours:.3f} s")
    print(f"ratio              {ours / reference:.2f}")


if __name__ == "__main__":
    main()
