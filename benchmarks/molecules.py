"""Molecules: the 30 targets of MoleculeACE, and the nearest of a million fingerprints.

``python benchmarks/molecules.py --out molecules.jsonl --package FILE`` learns the potency of
molecules, with the published split of each target, and prints the root of the mean squared error
on the test molecules, and on those of them that are activity cliffs. The tables are in the archive
of the package (``pip download --no-deps MoleculeACE``); rdkit is needed (``pip install rdkit``).
Every result is appended to the file at once, and what is there is not run again. ``--quick`` takes
two targets, ``--page`` prints the table of a file. ``--search N`` looks for 20 neighbours among N
fingerprints of 2,048 bits instead, and compares with rdkit; ``--device cuda`` does it there. It
needs no package: without one, bits are drawn. Without rdkit, results are compared with a plain
count of bits.

The fingerprints that :class:`Molecules` takes by default were chosen by the errors of ridge
regression on left-out molecules of the *training* parts of every second target,
the first, the third, and so on by name.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import tarfile
import time
import warnings
import zipfile
from collections import defaultdict
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from kernelmetric import MLKR, Kernelized, MetricRegressor, use_device
from kernelmetric.kernels import MinMax, Molecules, Tanimoto
from kernelmetric.selection import KernelChoice, RidgeKPCA

METHODS = ("forest", "ridge, bits", "ridge, counts", "ridge, molecules", "MetricRegressor")
PUBLISHED = {"best of 24, published (SVM)": (0.671, 0.751)}
COVERAGE = 0.9
N_BITS = 2048


def tables(package: Path) -> dict[str, list[dict[str, str]]]:
    """The rows of every target, from the archive of the package."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            texts = {n: archive.read(n) for n in archive.namelist() if "benchmark_data/" in n}
    else:
        with tarfile.open(package) as archive:
            members = [m for m in archive if "benchmark_data/" in m.name and m.isfile()]
            texts = {m.name: archive.extractfile(m).read() for m in members}
    return {
        Path(name).stem: list(csv.DictReader(io.StringIO(text.decode())))
        for name, text in sorted(texts.items())
        if name.endswith(".csv") and "/old/" not in name
    }


def fingerprints(smiles: list[str], *, counts: bool) -> np.ndarray:
    """ECFP4 of 2,048 bits, or as many counts."""
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=N_BITS)
    method = generator.GetCountFingerprintAsNumPy if counts else generator.GetFingerprintAsNumPy
    return np.array([method(Chem.MolFromSmiles(text)) for text in smiles], dtype=np.float64)


class Ridge:
    """Ridge regression with a kernel, its ridge chosen on points left out."""

    def __init__(self, kernel: object):
        self.kernel = kernel

    def fit(self, X: object, y: np.ndarray) -> Ridge:
        """Learn: predictions are linear in the coordinates of the space."""
        self.y_ = y
        self.space_ = RidgeKPCA(kernel=KernelChoice([self.kernel], max_samples=3000)).fit(X, y)
        return self

    def predict(self, X: object) -> np.ndarray:
        """The numbers, whose standardized values the space predicts."""
        said = self.space_.transform(X) @ self.space_.predictor_ + self.space_.means_
        return said[:, 0] * self.y_.std() + self.y_.mean()


def model(name: str) -> object:
    """The method, not fitted."""
    if name == "forest":
        return RandomForestRegressor(500, max_features=0.33, random_state=0)
    if name == "MetricRegressor":
        return MetricRegressor(Kernelized(MLKR(), kernel="molecules"))
    kernels = {"bits": Tanimoto(), "counts": MinMax(), "molecules": Molecules()}
    return Ridge(kernels[name.split(", ")[1]])


def cell(target: str, name: str, rows: list[dict[str, str]]) -> dict:
    """Errors of one method on one target."""
    smiles = [row["smiles"] for row in rows]
    y = np.array([float(row["y"]) for row in rows])
    train = np.array([row["split"] == "train" for row in rows])
    cliff = np.array([row["cliff_mol"] == "1" for row in rows])[~train]
    own = name in ("ridge, molecules", "MetricRegressor")
    started = time.process_time()
    X = np.array(smiles, dtype=object) if own else fingerprints(smiles, counts="counts" in name)
    fitted = model(name).fit(X[train], y[train])
    wrong = fitted.predict(X[~train]) - y[~train]
    found = {"target": target, "method": name, "n": int(train.sum())}
    found["rmse"] = float(np.sqrt(np.mean(wrong**2)))
    found["cliffs"] = float(np.sqrt(np.mean(wrong[cliff] ** 2)))
    found["seconds"] = round(time.process_time() - started, 2)
    if hasattr(fitted, "predict_interval"):
        ends = fitted.predict_interval(X[~train], COVERAGE)
        inside = (ends[:, 0] <= y[~train]) & (y[~train] <= ends[:, 1])
        found |= {"inside": float(inside.mean()), "wide": float(np.mean(ends[:, 1] - ends[:, 0]))}
    return found


def read(path: Path) -> list[dict]:
    """Finished cells."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(arguments: argparse.Namespace) -> None:
    """Every cell that is not there yet."""
    from rdkit import RDLogger

    RDLogger.DisableLog("rdApp.*")
    warnings.simplefilter("ignore")
    done = {(c["target"], c["method"]) for c in read(arguments.out)}
    found = tables(arguments.package)
    for target in list(found)[: 2 if arguments.quick else None]:
        for name in arguments.methods:
            if (target, name) not in done:
                new = json.dumps(cell(target, name, found[target]))
                with arguments.out.open("a") as file:
                    file.write(new + "\n")
                print(new, flush=True)


def page(cells: list[dict]) -> str:
    """Means over targets: all, those that fingerprints were chosen on, and the others."""
    values = defaultdict(dict)
    for c in cells:
        values[c["method"]][c["target"]] = c
    targets = sorted({c["target"] for c in cells})
    parts = {"all": targets, "chosen on": targets[::2], "others": targets[1::2]}
    lines = ["| | " + " | ".join(f"{part}, RMSE / cliffs" for part in parts) + " | inside | s |"]
    lines += ["|---" * (len(parts) + 3) + "|"]
    for name, (rmse, cliffs) in PUBLISHED.items():
        lines.append(f"| {name} | {rmse:.3f} / {cliffs:.3f} | | | | |")
    for name in METHODS:
        if name not in values:
            continue
        own, row = values[name], [name]
        for part in parts.values():
            there = [own[t] for t in part if t in own]
            means = [np.mean([c[key] for c in there]) for key in ("rmse", "cliffs")]
            row.append(" / ".join(f"{mean:.3f}" for mean in means))
        inside = [c["inside"] for c in own.values() if "inside" in c]
        row.append(f"{100 * np.mean(inside):.1f} %" if inside else "")
        row.append(f"{np.mean([c['seconds'] for c in own.values()]):.1f}")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def packed(n: int, package: Path | None) -> np.ndarray:
    """So many fingerprints: those of all targets, or drawn ones, again with some bits moved."""
    rng = np.random.default_rng(0)
    if package is None:
        odds = 1.0 / np.arange(1, N_BITS + 1)  # few bits are set often, as in molecules
        known = rng.random((20_000, N_BITS), np.float32) < rng.permutation(8.0 * odds)
    else:
        smiles = sorted({row["smiles"] for rows in tables(package).values() for row in rows})
        known = fingerprints(smiles, counts=False) > 0
    parts = []
    for begin in range(0, n, 20_000):
        bits = known[rng.integers(len(known), size=min(20_000, n - begin))]
        kept = rng.integers(180, 256, (len(bits), 1), np.uint8)
        bits &= rng.integers(0, 256, bits.shape, np.uint8) < kept
        bits |= rng.integers(0, 256, bits.shape, np.uint8) == 0
        parts.append(np.packbits(bits, axis=1))
    return np.concatenate(parts)


def by_rdkit(points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Similarities of some fingerprints with all by rdkit, and the seconds for their search."""
    from rdkit import DataStructs

    known = [DataStructs.CreateFromFPSText(row.tobytes().hex()) for row in points]
    started = time.process_time()
    found = [np.array(DataStructs.BulkTanimotoSimilarity(known[row], known)) for row in rows]
    best = [-np.sort(np.partition(-each, 20)[:20]) for each in found]
    return np.array(best), time.process_time() - started


def by_counting(points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, float]:
    """The same by NumPy, where rdkit is absent."""
    words = points.view(np.uint64)
    own, started, best = np.bitwise_count(words).sum(axis=1), time.process_time(), []
    for row in rows:
        shared = np.bitwise_count(words & words[row]).sum(axis=1).astype(np.float64)
        found = shared / np.maximum(own + float(own[row]) - shared, 1.0)
        best.append(-np.sort(np.partition(-found, 20)[:20]))
    return np.array(best), time.process_time() - started


def search(arguments: argparse.Namespace) -> None:
    """Queries a second, ours and rdkit's, and whether they find the same."""
    points = packed(arguments.search, arguments.package)
    rows = np.random.default_rng(1).integers(len(points), size=1024)
    with use_device(arguments.device) if arguments.device else nullcontext():
        Tanimoto().neighbors(points[:10_000], 20, points[rows[:64]])  # the device wakes up
        started, worked = time.perf_counter(), time.process_time()
        similarities, _ = Tanimoto().neighbors(points, 20, points[rows])
        took, worked = time.perf_counter() - started, time.process_time() - worked
    print(f"{len(points):,} fingerprints, on {arguments.device or 'the processor'}")
    print(f"kernelmetric: {len(rows) / took:.1f} queries a second, ", end="")
    print(f"{len(rows) / worked:.1f} in a second of one processor")
    name, other = ("rdkit", by_rdkit) if find_spec("rdkit") else ("NumPy", by_counting)
    best, worked = other(points, rows[:8])
    assert np.allclose(best, similarities[:8], atol=1e-6)
    print(f"{name}: {8 / worked:.1f} queries in a second of one processor, the same neighbours")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("molecules.jsonl"))
    parser.add_argument("--package", type=Path, help="archive of MoleculeACE")
    parser.add_argument("--quick", action="store_true", help="two targets")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--page", action="store_true", help="print the table, run nothing")
    parser.add_argument("--search", type=int, help="fingerprints to search, instead")
    parser.add_argument("--device", help="where to search, such as cuda")
    arguments = parser.parse_args()
    if arguments.search:
        search(arguments)
        return
    if not arguments.page:
        run(arguments)
    print(page(read(arguments.out)))


if __name__ == "__main__":
    main()
