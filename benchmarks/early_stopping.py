"""NCA on many points, with and without points held out: errors on new points.

    python benchmarks/early_stopping.py [SET ...] [--device cuda] [--page PAGE]

Sets are those of the data folder (``KERNELMETRIC_DATA``). Images have their 50 leading principal
components, tables standardized features. Errors are those of three neighbours on at most 10,000
other points; a fit takes at most 50 iterations.
"""

import argparse
import time
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from kernelmetric import NCA, use_device
from kernelmetric.compute.reductions import nearest_neighbors
from reproduction.datasets import load

# points to learn from, features, coordinates
SETS = {
    "mnist": (60_000, 50, 30),
    "letter": (15_000, 16, 12),
    "covtype": (15_000, 54, 20),
    "shuttle": (20_000, 9, 6),
    "usps": (7_000, 50, 30),
}
IMAGES = ("mnist", "usps")
N_TEST = 10_000
HEAD = [
    "| set | points | features | without a metric | NCA, none held out | NCA as it comes | s |",
    "|---|---|---|---|---|---|---|",
]


def split(name):
    """Training points and labels, test points and labels."""
    n, n_features, _ = SETS[name]
    X, y = load(name, return_X_y=True)
    rows = np.random.RandomState(0).permutation(len(X))[: n + N_TEST]
    if name == "mnist":  # as it is always cut
        rows = np.arange(n + N_TEST)
    X, y = np.asarray(X[rows], dtype=np.float64), np.asarray(y)[rows]
    prepare = PCA(n_features, random_state=0) if name in IMAGES else StandardScaler()
    X = prepare.fit(X[:n]).transform(X)
    if name in IMAGES:
        X /= X[:n].std()
    return X[:n], y[:n], X[n:], y[n:]


def error(E, y, Q, y_test):
    """Percent of the queries that three neighbours, a tie broken by the nearest, get wrong."""
    codes = np.unique(np.append(y, y_test), return_inverse=True)[1]
    found = codes[: len(y)][nearest_neighbors(E, 3, queries=Q)[0]]
    agree = found[:, 1] == found[:, 2]
    return 100 * np.mean(np.where(agree, found[:, 1], found[:, 0]) != codes[len(y) :])


def row(name, device):
    """The cells of one line."""
    X, y, X_test, y_test = split(name)
    n, n_features, n_components = SETS[name]
    errors = [error(X, y, X_test, y_test)]
    with use_device(device) if device else nullcontext():
        for early in (False, "auto"):
            start = time.perf_counter()
            nca = NCA(n_components, max_iter=50, early_stopping=early).fit(X, y)
            seconds = time.perf_counter() - start
            errors.append(error(nca.transform(X), y, nca.transform(X_test), y_test))
    told = [f"{value:.2f}" for value in errors]
    return [name, f"{n:,}", f"{n_features} → {n_components}", *told, f"{seconds:.1f}"]


def into_page(page, rows):
    """Put the rows in the place of those between the two marks."""
    path = Path(page)
    before, start, rest = path.read_text(encoding="utf-8").partition("<!-- early -->\n")
    _, end, after = rest.partition("<!-- end of early -->")
    if not (start and end):
        raise SystemExit(f"{page} has no <!-- early --> and <!-- end of early -->")
    lines = [*HEAD, *(f"| {' | '.join(cells)} |" for cells in rows)]
    path.write_text(before + start + "\n".join(lines) + "\n" + end + after, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", nargs="*", help=f"some of {', '.join(SETS)}; all where none is")
    parser.add_argument("--device", help="such as cuda")
    parser.add_argument("--page", help="write all rows into this page")
    options = parser.parse_args()
    unknown = sorted(set(options.sets) - set(SETS))
    if unknown or (options.page and options.sets):
        parser.error(f"Got {options.sets}, but expected some of {list(SETS)}, or a page of all.")
    warnings.simplefilter("ignore")  # fifty iterations are not meant to converge
    print("\n".join(HEAD))
    rows = []
    for name in options.sets or SETS:
        rows.append(row(name, options.device))
        print(f"| {' | '.join(rows[-1])} |", flush=True)
    if options.page:
        into_page(options.page, rows)


if __name__ == "__main__":
    main()
