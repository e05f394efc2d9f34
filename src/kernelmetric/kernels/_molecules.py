"""Molecules, written as SMILES, by the substructures that they share."""

import re
from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from kernelmetric.inputs import Objects
from kernelmetric.inputs._extras import require
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.kernels._counts import Counts, alike, one_by_one
from kernelmetric.kernels._objects import ObjectKernel

_FINGERPRINTS = ("circular", "features", "pairs", "torsions")
_PICTURE = 240, 160  # pixels
_PATH = re.compile(r"<path[^>]* d='([^']*)' ((?:style|fill)='[^']*')")


class Molecules(ObjectKernel):
    r"""Molecules by the substructures that they share: the mean of Tanimoto kernels of counts.

    .. math:: k(x, y) = \frac{1}{p} \sum_f
              \frac{\sum_j \min(c_{fj}(x), c_{fj}(y))}{\sum_j \max(c_{fj}(x), c_{fj}(y))}

    where :math:`c_{fj}(x)` is how often substructure j of fingerprint f is in x. Counts are those
    of rdkit (``pip install rdkit``), not folded to a number of bits, chirality included. X are
    SMILES. What fingerprints of your own have to say, :class:`MinMax` and :class:`Tanimoto` tell.

    About a millisecond for a molecule, once; then one product of sparse matrices.

    Parameters
    ----------
    fingerprints : tuple of str, default=("circular", "features", "pairs", "torsions")
        "circular": neighbourhoods of atoms (ECFP). "features": the same, where atoms are what they
        do, such as donors (FCFP). "pairs": two atoms and how far apart they are. "torsions": four
        atoms in a row.
    radius : int, default=3
        Of neighbourhoods, in bonds; 2 is ECFP4, 3 is ECFP6.

    Examples
    --------
    >>> from kernelmetric.kernels import Molecules
    >>> kernel = Molecules()
    >>> kernel(["CCO", "CCN", "c1ccccc1"]).round(2)  # doctest: +SKIP
    array([[1.  , 0.29, 0.  ],
           [0.29, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    expects: ClassVar[str] = "SMILES of molecules"

    def __init__(self, fingerprints: Any = _FINGERPRINTS, *, radius: int = 3):
        self.fingerprints = fingerprints
        self.radius = radius

    def read(self, item: Any) -> str:
        """SMILES that rdkit understands."""
        if not isinstance(item, str):
            raise ValueError("it is no string")
        _molecule(item)
        return str(item)

    def parts(self, item: str) -> Iterator[tuple[str, str]]:
        """Atoms, as rdkit numbers them, each of them made one of no element."""
        chem = _rdkit()
        for atom in _molecule(item).GetAtoms():
            hidden = _molecule(item)
            hidden.GetAtomWithIdx(atom.GetIdx()).SetAtomicNum(0)
            yield f"{atom.GetSymbol()} at {atom.GetIdx()}", chem.MolToSmiles(hidden)

    def picture(self, item: str) -> str | None:
        """The structure, as rdkit draws it."""
        try:
            draw = _rdkit("Chem.Draw.rdMolDraw2D")
        except ImportError:  # it also needs libraries that small machines lack
            return None
        canvas = draw.MolDraw2DSVG(*_PICTURE)
        canvas.DrawMolecule(_molecule(item))
        canvas.FinishDrawing()
        return _joined(canvas.GetDrawingText())

    def features(self, items: list[str]) -> Any:
        """The counts of every fingerprint."""
        generators = list(self._generators())
        rows = [[np.empty(0, np.intp)] for _ in generators]
        ids = [[np.empty(0, np.uint64)] for _ in generators]
        for i, item in enumerate(items):
            molecule = _molecule(item)
            for j, (_, generator) in enumerate(generators):
                counts = generator.GetSparseCountFingerprint(molecule).GetNonzeroElements()
                known = np.fromiter(counts, np.uint64, len(counts))
                times = np.fromiter(counts.values(), np.intp, len(counts))
                own, codes = one_by_one(np.full(len(known), i), known, times)
                rows[j].append(own)
                ids[j].append(codes)
        return Together(
            Counts.of(np.concatenate(own), np.concatenate(codes), len(items))
            for own, codes in zip(rows, ids, strict=True)
        )

    def _values(self, A: Objects, B: Objects | None) -> Any:
        of_A = self._made(A)
        of_B = of_A if B is None else self._made(B)
        K = np.zeros((len(A), len(A if B is None else B)))
        for F, G in zip(of_A, of_B, strict=True):
            K += alike(F.products(G), F.squares(), G.squares(), "minmax") / len(of_A)
        return K

    def _diagonal(self, A: Objects) -> Any:
        return np.ones(len(A))

    def _generators(self) -> Iterator[tuple[str, Any]]:
        names = self.fingerprints
        if isinstance(names, str) or not len(names) or not set(names) <= set(_FINGERPRINTS):
            raise ValueError(
                f"Got fingerprints={names!r}, but expected some of {_FINGERPRINTS}: try "
                "('circular',)."
            )
        rdFG = _rdkit("Chem.rdFingerprintGenerator")
        Numbers(Integral, low=0).check(self, "radius")
        radius, chiral = int(self.radius), {"includeChirality": True}
        for name in names:
            if name == "circular":
                yield name, rdFG.GetMorganGenerator(radius=radius, **chiral)
            elif name == "features":
                atoms = rdFG.GetMorganFeatureAtomInvGen()
                kind = {"atomInvariantsGenerator": atoms, **chiral}
                yield name, rdFG.GetMorganGenerator(radius=radius, **kind)
            elif name == "pairs":
                yield name, rdFG.GetAtomPairGenerator(**chiral)
            else:
                yield name, rdFG.GetTopologicalTorsionGenerator(**chiral)


class Together(tuple):
    """Features of several kinds, of which rows are taken together."""

    def __getitem__(self, rows: Any) -> Any:
        return Together(part[rows] for part in self)


def _molecule(smiles: str) -> Any:
    """The molecule of SMILES, refused where there is none."""
    chem, logs = _rdkit(), _rdkit("rdBase")
    with logs.BlockLogs():  # what it says of mistakes is said below
        molecule = chem.MolFromSmiles(smiles)
    if molecule is None or not molecule.GetNumAtoms():
        raise ValueError("rdkit reads no molecule from it")
    return molecule


def _joined(svg: str) -> str:
    """The same drawing with one path for each style: a page may hold 2,000 of them."""
    paths: dict[str, str] = {}
    for way, style in _PATH.findall(svg):
        paths[style] = f"{paths.get(style, '')}{' '.join(way.split())}"
    body = "".join(f"<path d='{way}' {style}/>" for style, way in paths.items())
    size = "0 0 {} {}".format(*_PICTURE)
    return f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='{size}'>{body}</svg>"


def _rdkit(module: str = "Chem") -> Any:
    """A module of rdkit, or the way to it."""
    own = "Unlike MinMax() and Tanimoto() on fingerprints of your own"
    return require(f"rdkit.{module}", "molecules", f"{own}, Molecules needs rdkit")
