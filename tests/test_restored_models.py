"""Model files with one thing changed: refused, or as harmless as any other model.

Each case is a fitted estimator of an allowed class. Its file is changed in one place, with the
digests made right again, and loaded in a process of its own: a crash there is a failure here.
"""

import copy
import hashlib
import io
import itertools
import json
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from kernelmetric import (
    DNE,
    KPCA,
    LDA,
    MLKR,
    NCA,
    RBF,
    Adapter,
    AlignedScales,
    Delta,
    IdealizedKernel,
    Kernelized,
    KernelizedCV,
    KernelTrick,
    Laplacian,
    MetricClassifier,
    MetricRegressor,
    Nystroem,
    Pairs,
    PairVerifier,
    Polynomial,
    RandomFeatures,
    TransductiveDistance,
    TransductiveRegressor,
    load,
    save,
)
from kernelmetric.kernels import Columns
from kernelmetric.learners import Learner
from kernelmetric.linkage import EqualKeys, NearestText, RecordLinker, _decision
from kernelmetric.retrieval import PLDA, Drift
from kernelmetric.selection import RidgeKPCA
from kernelmetric.shipping import SavedFileError
from kernelmetric.shipping._allowed import names_of_classes
from kernelmetric.shipping._checks import check_fitted
from kernelmetric.shipping._fitted import TABLE as WANTED
from kernelmetric.tables import TableEncoder

MOST_BYTES = 6 * 2**30  # of address space: what asks for more gets a MemoryError
N_CHANGES = 2  # of every fourth case, in the ordinary run


def points():
    rng = np.random.RandomState(0)
    y = np.arange(24) % 3
    X = rng.standard_normal((24, 3)) + y[:, None]
    return X, y


def codes():
    """Small integers, as an encoder wants them, with some rare ones."""
    rng = np.random.RandomState(1)
    return np.column_stack([rng.randint(0, 3, 24), np.r_[rng.randint(0, 5, 20), 7, 8, 9, 9]]) * 1.0


def frame():
    X, _ = points()
    table = pd.DataFrame(X, columns=list("abc"))
    table["kind"] = np.array(["elm", "fir", "oak"], dtype=object)[np.arange(24) % 3]
    table.loc[[1, 5], "a"] = np.nan
    return table


def with_gaps():
    X, _ = points()
    X = X.copy()
    X[[1, 5], 0] = np.nan
    return X


def before(*steps):
    return make_pipeline(*steps, DNE(2))


CASES = {
    "one-hot": lambda: (before(OneHotEncoder(sparse_output=False)), codes()),
    "one-hot sparse": lambda: (make_pipeline(OneHotEncoder(), TruncatedSVD(2)), codes()),
    "one-hot dropped": lambda: (
        before(OneHotEncoder(drop="first", sparse_output=False)),
        codes(),
    ),
    "one-hot grouped": lambda: (
        before(
            OneHotEncoder(
                max_categories=3, sparse_output=False, handle_unknown="infrequent_if_exist"
            )
        ),
        codes(),
    ),
    "ordinal": lambda: (before(OrdinalEncoder()), codes()),
    "table": lambda: (
        make_pipeline(
            ColumnTransformer(
                [
                    ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), list("ab")),
                    ("kinds", OneHotEncoder(sparse_output=False), ["kind"]),
                ],
                remainder="passthrough",
            ),
            Kernelized(DNE(2), "rbf", KPCA(4)),
        ),
        frame(),
    ),
    "columns": lambda: (
        Kernelized(DNE(2), Columns(kernel="rbf"), KPCA(4)),
        frame().to_numpy(dtype=object),
    ),
    "scalers": lambda: (
        before(StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), Normalizer()),
        points()[0],
    ),
    "imputer": lambda: (before(SimpleImputer(add_indicator=True)), with_gaps()),
    "indicator": lambda: (
        before(FeatureUnion([("n", MissingIndicator()), ("x", SimpleImputer())])),
        with_gaps(),
    ),
    "power": lambda: (before(PowerTransformer(), FunctionTransformer()), points()[0]),
    "quantiles": lambda: (before(QuantileTransformer(n_quantiles=9)), points()[0]),
    "PCA": lambda: (before(PCA(2, whiten=True)), points()[0]),
    "discriminants": lambda: (before(LinearDiscriminantAnalysis()), points()[0]),
    "theirs": lambda: (
        before(NeighborhoodComponentsAnalysis(2, random_state=np.random.RandomState(0))),
        points()[0],
    ),
    "NCA": lambda: (NCA(2), points()[0]),
    "LDA": lambda: (LDA(), points()[0]),
    "rank": lambda: (Kernelized(DNE(2), RBF(gamma=0.3), KPCA(3)), points()[0]),
    "landmarks": lambda: (
        Kernelized(DNE(2), RBF() + 0.1 * Delta(), Nystroem(6, random_state=0)),
        points()[0],
    ),
    "waves": lambda: (
        Kernelized(DNE(2), "rbf", RandomFeatures(20, n_components=4, random_state=0)),
        points()[0],
    ),
    "trick": lambda: (Kernelized(DNE(2), Laplacian() * Polynomial(), KernelTrick()), points()[0]),
    "scales": lambda: (Kernelized(DNE(2), AlignedScales(), KPCA(3)), points()[0]),
    "aligned": lambda: (Kernelized(DNE(2), "aligned", KPCA(3)), points()[0]),
    "precomputed": lambda: (
        Kernelized(DNE(2), "precomputed", KPCA(3)),
        RBF(gamma=0.3)(points()[0]),
    ),
    "idealized": lambda: (IdealizedKernel("rbf", C=10.0), points()[0]),
    "indefinite": lambda: (IdealizedKernel(C=10.0, psd="none"), points()[0]),
    "transductive": lambda: (TransductiveDistance(2, n_neighbors=5, lam=5000.0), points()[0]),
    "transductive kernel": lambda: (
        TransductiveDistance(2, penalty="kernel", lam=5000.0),
        points()[0],
    ),
    "few numbers": lambda: (TransductiveRegressor(cv=2), points()[0]),
    "verifier": lambda: (PairVerifier(NCA(2)), points()[0]),
    "classifier": lambda: (MetricClassifier(DNE(2), cv=2), points()[0]),
    "regressor": lambda: (MetricRegressor(Kernelized(PCA(2), "rbf"), cv=2), points()[0]),
}


def fitted(case):
    """The estimator of a case, fitted, and points to ask it about."""
    model, X = CASES[case]()
    y = points()[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if isinstance(model, PairVerifier):
            pairs = Pairs.from_labels(y, per_point=3, random_state=0)
            return PairVerifier(clone(model.metric).fit(X, y)).calibrate(pairs, X), X
        return model.fit(X, y), X


# --- one change at a time -----------------------------------------------------------------------


def npy(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def changed_arrays(array):
    """The array with one value, its type or its shape changed."""
    values = {
        "f": [np.nan, np.inf, -1.0, 0.0, 1e6],
        "i": [-1, 0, 10**6, 2**31 - 1, -(2**31)],
        "u": [0, 10**6],
    }.get(array.dtype.kind, [])
    for value, place in itertools.product(values, (0, -1)):
        if array.size:
            flat = array.flatten()
            flat[place] = value
            yield f"[{place}] = {value}", flat.reshape(array.shape)
    for dtype in ("float32", "float64", "float16", "int64", "int8", "bool", "U4", ">f8"):
        if array.dtype.kind != "U" and array.dtype != dtype:
            with np.errstate(all="ignore"):
                yield dtype, array.astype(dtype)
    if array.ndim:
        yield "shorter", array[:-1]
        yield "longer", np.concatenate([array, array])
        yield "narrower", array[..., :-1]
        yield "wider", np.concatenate([array, array], axis=-1)
        yield "turned", array.T
        yield "flat", array.ravel()
        yield "deeper", array[None]
        yield "one", array[:1]
        yield "none", array[:0]
        yield "backwards", array[::-1]
        yield "scalar", np.zeros((), array.dtype)


LEAVES = (-1, 0, 1, 7, 10**9, -(10**15), 0.5, -2.5, 1e300, "text", None, True, [], [1, 2])
NODES = ({"float": "nan"}, {"float": "-inf"}, {"array": 0}, {"tuple": [1]}, {"dict": [["a", 1]]})


def places(node, path=()):
    """Paths to everything in a tree of JSON."""
    yield path
    children = enumerate(node) if isinstance(node, list) else ()
    children = node.items() if isinstance(node, dict) else children
    for key, child in children:
        yield from places(child, (*path, key))


def changed_trees(tree):
    """Names of changes, and functions that make the tree with one leaf, list or attribute so."""

    def put(value):
        return lambda parent, key: parent.__setitem__(key, value)

    for path in places(tree):
        if not path:
            continue
        found = tree
        for key in path:
            found = found[key]
        if not isinstance(found, dict | list):
            for value in (*LEAVES, *NODES):
                yield f"{path} = {value}", with_change(tree, path, put(value))
        elif isinstance(found, list) and found:
            for what, change in LISTS.items():
                yield f"{path} {what}", with_change(tree, path, change)
        if isinstance(path[-1], str):
            yield f"{path} removed", with_change(tree, path, lambda p, k: p.pop(k))


LISTS = {
    "shorter": lambda parent, key: parent[key].pop(),
    "longer": lambda parent, key: parent[key].append(parent[key][0]),
    "swapped": lambda parent, key: parent[key].reverse(),
}


def with_change(tree, path, change):
    def make():
        other = copy.deepcopy(tree)
        parent = other
        for key in path[:-1]:
            parent = parent[key]
        change(parent, path[-1])
        return {"tree.json": json.dumps(other).encode()}

    return make


def changes(members):
    """Names of changes, and functions that make the members that differ."""
    for name, data in members.items():
        if name.startswith("arrays/"):
            array = np.load(io.BytesIO(data))
            for what, other in changed_arrays(array):
                yield f"{name} {what}", lambda name=name, other=other: {name: npy(other)}
    yield from changed_trees(json.loads(members["tree.json"]))


def written(members, path):
    manifest = json.loads(members["manifest.json"])
    manifest["sha256"] = {
        name: hashlib.sha256(data).hexdigest()
        for name, data in members.items()
        if name != "manifest.json"
    }
    members = members | {"manifest.json": json.dumps(manifest).encode()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# --- what must come of it -----------------------------------------------------------------------


def outcome(path, X):
    """ "refused", "raised" or "finite"; anything else is a fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load(path)
        except SavedFileError:
            return "refused"
        try:
            if isinstance(model, PairVerifier):
                answers = [model.predict_pairs([[0, 1], [2, 5]], X)]
            elif isinstance(model, TransductiveRegressor):
                answers = [model.predict(X), model.predict_interval(X)]
            elif isinstance(model, MetricClassifier | MetricRegressor):
                answers = [model.predict(X), model.score_samples(X), *model.kneighbors(X)]
                likely = getattr(model, "predict_proba", None) or model.predict_interval
                answers.append(likely(X))
            else:
                answers = [model.transform(X)]
            if isinstance(model, TransductiveDistance):
                answers.append(model.predict(X))
        except Exception:  # any that Python can catch will do
            return "raised"
    for answer in answers:
        answer = answer.toarray() if hasattr(answer, "toarray") else np.asarray(answer)
        if answer.dtype.kind == "f" and not np.isfinite(answer).all():
            return "not finite"
    return "finite"


def main(folder, n_changes, *cases):
    """Say each change before it is tried, so that the last line tells of a crash."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    except ImportError:  # Windows has none
        pass
    counts = {}
    for case in cases:
        model, X = fitted(case)
        path = save(model, Path(folder) / "honest.metric")
        assert outcome(path, X) == "finite", case
        honest = members_of(path)
        every = list(changes(honest))
        rng = np.random.RandomState(0)
        kept = (
            rng.permutation(len(every))[: int(n_changes)] if int(n_changes) else range(len(every))
        )
        for i in sorted(kept):
            what, make = every[i]
            sys.stdout.write(f"{case}: {what}\n")
            sys.stdout.flush()
            found = outcome(written(honest | make(), Path(folder) / "changed.metric"), X)
            counts[found] = counts.get(found, 0) + 1
            if found == "not finite":
                raise SystemExit("gave numbers that are not finite")
    sys.stdout.write(json.dumps(counts))


def in_a_process(folder, n_changes, *cases):
    command = [sys.executable, __file__, str(folder), str(n_changes), *cases]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    last = run.stdout.strip().splitlines()[-1:] or [""]
    assert run.returncode == 0, f"{last[0]} ended with {run.returncode}: {run.stderr[-2000:]}"
    return json.loads(last[0])


@pytest.mark.parametrize(
    ("n_changes", "every"), [(N_CHANGES, 4), pytest.param(25, 1, marks=pytest.mark.slow)]
)
def test_a_changed_file_is_refused_or_harmless(n_changes, every, tmp_path):
    counts = in_a_process(tmp_path, n_changes, *list(CASES)[::every])
    assert set(counts) <= {"refused", "raised", "finite"}
    assert counts["refused"] > sum(counts.values()) / 4


def test_the_file_that_corrupted_the_heap_is_refused(tmp_path):
    """scikit-learn's encoder writes where ``_n_features_outs`` says, whatever the size."""
    model, _ = fitted("one-hot")
    members = members_of(save(model, tmp_path / "honest.metric"))
    text = members["tree.json"].decode()
    assert text.count('"_n_features_outs":[3,') == 1
    text = text.replace('"_n_features_outs":[3,', '"_n_features_outs":[100000,')
    path = written(members | {"tree.json": text.encode()}, tmp_path / "changed.metric")
    with pytest.raises(SavedFileError, match=r"_n_features_outs=\[100000.*the numbers of categor"):
        load(path)


# --- each attribute by itself -------------------------------------------------------------------


def objects_in(value):
    """All objects with attributes, inside out."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from objects_in(item)
    elif isinstance(value, dict):
        yield from objects_in(list(value.values()))
    elif type(value) in names_of_classes():
        yield from objects_in(vars(value))
        yield value


@pytest.fixture(scope="module")
def every_object():
    """Fitted objects of every class whose attributes are checked."""
    found = [found for case in CASES for found in objects_in(fitted(case)[0])]
    X, y = points()[:2]
    weights = np.arange(len(X)) % 3 + 0.5
    weights[:2] = 0.0
    for weighted, target in (
        (MetricClassifier(DNE(2), cv=2, use_features=True), y),
        (MetricRegressor(MLKR(2), cv=2, use_features=True), X[:, 0]),
        (TransductiveDistance(2, n_neighbors=5, lam=5000.0), y),
    ):
        found += objects_in(weighted.fit(X, target, sample_weight=weights))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    found += objects_in(Kernelized(DNE(2), "rbf").fit(frame, y))  # it keeps medians, for gaps
    for far in (DNE(2), RandomFeatures(20, kernel="rbf", random_state=0)):
        found += objects_in(far.fit(X + 1e4, y))
    for learner, target in ((DNE(2), y), (MLKR(2), X[:, 0])):
        found += objects_in(KernelizedCV(learner, [RBF()], cv=2).fit(X, target))
    found += objects_in(Adapter(cv=2, softmax=False).fit(X, pairs=np.arange(24).reshape(12, 2)))
    found += objects_in([PLDA(2).fit(X, y), Drift().fit(X, X[:, :2])])
    found += objects_in([linked(), linked_titles()])
    return found


def linked():
    """A linker that has learned from so many labelled pairs that it has a kernel."""
    rng = np.random.RandomState(0)
    names = [f"{'abcdefgh'[i % 8] * 3}{'klmnopqr'[i // 8] * 3}" for i in range(40)]
    table = pd.DataFrame({"name": names, "size": rng.uniform(0, 9, 40)})
    table = pd.concat([table, table.assign(size=table["size"] + 0.1)], ignore_index=True)
    known = [(i, 40 + j) for i in range(40) for j in (i, i ^ 1)]
    linker = RecordLinker(rules=[NearestText(), EqualKeys("name")])
    return linker.fit(table, pairs=np.array(known), same=[i == j - 40 for i, j in known])


def linked_titles():
    """A linker of texts, with so many labels that its decision has trees and the fields' model."""
    rng = np.random.RandomState(0)
    words = ["black", "camera", "digital", "lens", "zoom", "case", "kit", "silver"]
    title = [f"{' '.join(rng.permutation(words)[:5])} x{k}y" for k in range(50)]
    known = np.array([(i, i ^ turn) for i in range(50) for turn in (0, 1)])
    tables = (pd.DataFrame({"title": each}) for each in (title, title))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_decision._TREES, "max_iter", 15)
        return RecordLinker().fit(*tables, known, known[:, 0] == known[:, 1])


def spoilt(array, wanted):
    """What the table must refuse: another shape, another kind, other values."""
    kind, *letters = wanted.split()
    kind = kind.partition("<")[0]
    yield "axis", array[None]
    yield "list", array.tolist()
    if kind != "any":
        yield "text", array.astype("U8")
        other = -5 if kind in ("count", "code") else np.inf
        if array.size:
            yield "value", np.where(np.arange(array.size).reshape(array.shape) == 0, other, array)
    if kind in ("finite", "number", "scale", "variance", "ascending", "quantile"):
        yield "half", array.astype(np.float16)
        yield "integers", np.ones(array.shape, dtype=int)
    if kind in ("finite", "variance", "ascending", "sign") and array.size:
        yield "NaN", np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array)
    if kind == "scale":
        yield "zero", np.zeros_like(array)
    for axis, letter in enumerate(letters):
        if letter == "d":  # the number of features is known
            yield f"side {axis}", np.repeat(array, 2, axis=axis)


# What each array of a class must be like, by its name.
TABLE = {
    kind: {
        name: wanted
        for wanted, names in table.items()
        for name in names.split()
        if isinstance(wanted, str) and " " in wanted
    }
    for kind, table in WANTED.items()
}


def test_every_attribute_of_the_table_is_checked(every_object):
    seen = set()
    for found, (kind, attributes) in itertools.product(every_object, TABLE.items()):
        if not isinstance(found, kind):
            continue
        check_fitted(found)
        for name, wanted in attributes.items():
            value = vars(found).get(name)
            if not isinstance(value, np.ndarray) or (kind, name) in seen:
                continue
            seen.add((kind, name))
            for what, array in spoilt(value, wanted):
                other = copy.copy(found)
                vars(other)[name] = array
                with pytest.raises(ValueError, match=rf"Got {type(found).__name__}\.{name} ") as e:
                    check_fitted(other)
                assert e.value, what
    listed = {(kind, name) for kind, table in TABLE.items() for name in table}
    assert listed - seen <= UNSEEN


def test_every_single_value_of_the_table_is_checked(every_object):
    seen = set()
    for found, (kind, table) in itertools.product(every_object, WANTED.items()):
        if not isinstance(found, kind):
            continue
        for wanted, names in table.items():
            for name in names.split() if isinstance(wanted, type) or " " not in wanted else ():
                if vars(found).get(name) is None or (kind, name) in seen:
                    continue
                seen.add((kind, name))
                for value in (b"odd", np.nan, -1):
                    other = copy.copy(found)
                    vars(other)[name] = value
                    if (wanted, value) != ("real", -1):
                        with pytest.raises(
                            ValueError, match=rf"Got {type(found).__name__}\.{name}"
                        ):
                            check_fitted(other)
    assert len(seen) > 30


# Of learners that no case has, and of metrics still to come.
UNSEEN = {
    (Learner, "slacks_"),
    (Learner, "chunks_"),
    (LabelEncoder, "classes_"),
}


def test_sides_that_two_attributes_share_must_agree(every_object):
    """Each letter that stands twice in the table of a class is one number."""
    n_tried = 0
    for found, (kind, attributes) in itertools.product(every_object, TABLE.items()):
        if not isinstance(found, kind):
            continue
        present = {a: w.split()[1:] for a, w in attributes.items() if a in vars(found)}
        present = {a: w for a, w in present.items() if isinstance(vars(found)[a], np.ndarray)}
        for (a, sides), (_, others) in itertools.permutations(present.items(), 2):
            shared = set(sides) & set(others) - set("d*0123456789")
            if not shared or vars(found)[a].size == 0:
                continue
            letter = min(shared)
            other = copy.copy(found)
            longer = np.repeat(vars(found)[a], 2, axis=sides.index(letter))
            if sides.count(letter) == 2:
                longer = np.repeat(longer, 2, axis=1)
            vars(other)[a] = longer
            with pytest.raises(ValueError, match=r"but expected|could not"):
                check_fitted(other)
            n_tried += 1
    assert n_tried > 50


def changed(found, **attributes):
    other = copy.copy(found)
    vars(other).update(attributes)
    return other


def encoder(X, **options):
    return OneHotEncoder(sparse_output=False, **options).fit(X)


RARE = {"max_categories": 3, "handle_unknown": "infrequent_if_exist"}
HOSTILE = {
    "outputs": lambda: changed(encoder(codes()), _n_features_outs=[10**6, 3]),
    "outputs of no integers": lambda: changed(encoder(codes()), _n_features_outs=[3.0, 8.0]),
    "outputs missing": lambda: changed(encoder(codes()), _n_features_outs=None),
    "dropped beyond": lambda: changed(
        encoder(codes(), drop="first"), _drop_idx_after_grouping=np.array([0, 99], dtype=object)
    ),
    "dropped below": lambda: changed(
        encoder(codes(), drop="first"), _drop_idx_after_grouping=np.array([0, -1], dtype=object)
    ),
    "dropped too few": lambda: changed(
        encoder(codes(), drop="first"), _drop_idx_after_grouping=np.array([0], dtype=object)
    ),
    "categories backwards": lambda: changed(
        encoder(codes()), categories_=[c[::-1] for c in encoder(codes()).categories_]
    ),
    "categories twice": lambda: changed(
        encoder(codes()),
        categories_=[np.repeat(c[:1], len(c)) for c in encoder(codes()).categories_],
    ),
    "NaN among categories": lambda: changed(
        encoder(codes()),
        categories_=[np.r_[np.nan, c[1:]] for c in encoder(codes()).categories_],
    ),
    "a category less": lambda: changed(
        encoder(codes()), categories_=[c[:-1] for c in encoder(codes()).categories_]
    ),
    "categories of one feature": lambda: changed(
        encoder(codes()), categories_=encoder(codes()).categories_[:1]
    ),
    "categories in a matrix": lambda: changed(
        encoder(codes()), categories_=[c[None] for c in encoder(codes()).categories_]
    ),
    "rare ones beyond": lambda: changed(
        encoder(codes(), **RARE), _infrequent_indices=[None, np.array([0, 99])]
    ),
    "rare ones that are none": lambda: changed(
        encoder(codes(), **RARE), _infrequent_indices=[None, np.array([], dtype=int)]
    ),
    "rare ones below": lambda: changed(
        encoder(codes(), **RARE), _infrequent_indices=[None, np.array([-1, 0])]
    ),
    "rare ones of fractions": lambda: changed(
        encoder(codes(), **RARE), _infrequent_indices=[None, np.array([0.0, 1.0])]
    ),
    "rare ones just beyond": lambda: changed(
        encoder(codes(), **RARE),
        _infrequent_indices=[None, np.array([0, len(encoder(codes()).categories_[1])])],
    ),
    "last category before": lambda: changed(
        encoder(codes()),
        categories_=[np.r_[c[:-2], c[-1], c[-2]] for c in encoder(codes()).categories_],
    ),
    "first category after": lambda: changed(
        encoder(codes()),
        categories_=[np.r_[c[1], c[0], c[2:]] for c in encoder(codes()).categories_],
    ),
    "two categories of NaN": lambda: changed(
        encoder(codes()),
        categories_=[np.r_[c[:-2], np.nan, np.nan] for c in encoder(codes()).categories_],
    ),
    "dropped just beyond": lambda: changed(
        encoder(codes(), drop="first"), _drop_idx_after_grouping=np.array([0, 8], dtype=object)
    ),
    "dropped by truth": lambda: changed(
        encoder(codes(), drop="first"), _drop_idx_after_grouping=np.array([0, True], dtype=object)
    ),
    "rare ones twice": lambda: changed(
        encoder(codes(), **RARE), _infrequent_indices=[None, np.array([1, 1])]
    ),
    "rare ones of one feature": lambda: changed(
        encoder(codes(), **RARE), _infrequent_indices=[np.array([1])]
    ),
    "rare ones mapped beyond": lambda: changed(
        encoder(codes(), **RARE),
        _default_to_infrequent_mappings=[
            None,
            encoder(codes(), **RARE)._default_to_infrequent_mappings[1] + 90,
        ],
    ),
    "mapping without rare ones": lambda: changed(
        encoder(codes(), **RARE), _infrequent_indices=[None, None]
    ),
    "rare or not": lambda: changed(encoder(codes()), _infrequent_enabled=1),
    "names of fewer features": lambda: changed(
        StandardScaler().fit(frame()[["b", "c"]]), feature_names_in_=np.array(["b"], dtype=object)
    ),
    "names that are numbers": lambda: changed(
        StandardScaler().fit(frame()[["b", "c"]]), feature_names_in_=np.array([1, 2], dtype=object)
    ),
    "half a feature": lambda: changed(NCA(2).fit(*points()), n_features_in_=2.5),
    "fewer features than none": lambda: changed(NCA(2).fit(*points()), n_features_in_=-3),
    "true features": lambda: changed(
        NCA(1).fit(points()[0][:, :1], points()[1]), n_features_in_=True
    ),
    "columns of another map": lambda: changed(NCA(2).fit(*points()), n_features_in_=4),
    "quantiles that fall": lambda: changed(
        QuantileTransformer(n_quantiles=5).fit(points()[0]),
        quantiles_=QuantileTransformer(n_quantiles=5).fit(points()[0]).quantiles_[::-1],
    ),
    "variance below zero": lambda: changed(
        PCA(2).fit(points()[0]), explained_variance_=np.array([1.0, -1.0])
    ),
    "indicator of another class": lambda: changed(
        SimpleImputer().fit(with_gaps()), indicator_=StandardScaler()
    ),
    "indicator of features beyond": lambda: changed(
        MissingIndicator().fit(with_gaps()), features_=np.array([3])
    ),
    "indicator of half a feature": lambda: changed(
        MissingIndicator().fit(with_gaps()), _n_features=2.5
    ),
    "indicator of features below": lambda: changed(
        MissingIndicator().fit(with_gaps()), features_=np.array([-1])
    ),
    "steps of no names": lambda: changed(
        make_pipeline(StandardScaler(), NCA(2)).fit(*points()), steps=[(1, StandardScaler())]
    ),
    "steps of no estimators": lambda: changed(
        make_pipeline(StandardScaler(), NCA(2)).fit(*points()), steps=[("a", {"b": 1})]
    ),
    "steps of one part": lambda: changed(
        make_pipeline(StandardScaler(), NCA(2)).fit(*points()), steps=[("a",)]
    ),
    "columns beyond": lambda: changed(
        ColumnTransformer([("a", StandardScaler(), [0])]).fit(points()[0]),
        _transformer_to_input_indices={"a": [3], "remainder": []},
    ),
    "columns below": lambda: changed(
        ColumnTransformer([("a", StandardScaler(), [0])]).fit(points()[0]),
        _transformer_to_input_indices={"a": [-1], "remainder": []},
    ),
    "anchors beyond the columns": lambda: changed(
        KPCA(2, kernel="precomputed").fit(RBF(gamma=0.3)(points()[0])),
        anchors_=np.arange(1, 25),
    ),
    "sparse anchors of other features": lambda: changed(
        KPCA(2, kernel="rbf").fit(sparse.csr_matrix(points()[0])),
        anchors_=sparse.csr_matrix(np.ones((24, 4))),
    ),
    "sparse anchors of NaN": lambda: changed(
        KPCA(2, kernel="rbf").fit(sparse.csr_matrix(points()[0])),
        anchors_=sparse.csr_matrix(np.full((24, 3), np.nan)),
    ),
    "a space of another metric": lambda: changed(
        Kernelized(DNE(2), "rbf", KPCA(3)).fit(*points()),
        space_=KPCA(4, kernel="rbf").fit(points()[0]),
    ),
    "a space of other features": lambda: changed(
        Kernelized(DNE(2), "rbf", KPCA(3)).fit(*points()),
        space_=KPCA(3, kernel="rbf").fit(points()[0][:, :2]),
    ),
    "a kernel that is none": lambda: changed(
        Kernelized(DNE(2), "rbf", KPCA(3)).fit(*points()), kernel_=StandardScaler()
    ),
    "a space that is none": lambda: changed(
        Kernelized(DNE(2), "rbf", KPCA(3)).fit(*points()), space_=StandardScaler()
    ),
    "signs of other numbers": lambda: changed(
        IdealizedKernel(C=10.0).fit(*points()), signature_=np.array([1.0, 2.0])
    ),
    "signs of too few": lambda: changed(
        IdealizedKernel(C=10.0, psd="none").fit(*points()), signature_=np.array([1.0])
    ),
    "a map beside its space": lambda: changed(
        IdealizedKernel("rbf", C=10.0).fit(*points()), components_=np.ones((2, 3))
    ),
    "codes of no class": lambda: changed(
        TransductiveDistance(2, n_neighbors=5, lam=5000.0).fit(*points()), _codes=np.full(24, 3)
    ),
    "no neighbours to ask": lambda: changed(
        TransductiveDistance(2, n_neighbors=5, lam=5000.0).fit(*points()), n_neighbors_=0
    ),
    "points that are others": lambda: changed(
        TransductiveDistance(2, n_neighbors=5, lam=5000.0).fit(*points()), graph_="points"
    ),
    "columns without names": lambda: changed(TableEncoder(["size"]), numbers=[0]),
    "words of no column": lambda: changed(TableEncoder(["size"]), missing={"size": ["?", 1]}),
    "a table of other steps": lambda: changed(TableEncoder(["size"]), columns_=StandardScaler()),
    "points beside landmarks": lambda: changed(RidgeKPCA(2).fit(*points()), n_landmarks_=5),
    "an embedding beside its space": lambda: changed(
        TransductiveDistance(2, penalty="kernel", lam=5000.0).fit(*points()),
        components_=np.ones((2, 3)),
    ),
    "pairs beyond the points": lambda: changed(Pairs([[0, 1]], n_samples=3), n_samples=1),
    "pairs of fractions": lambda: changed(
        Pairs([[0, 1]], n_samples=3), similar=np.array([[0.0, 1.0]])
    ),
    "a pair of one point": lambda: changed(
        Pairs([[0, 1]], n_samples=3), similar=np.array([[1, 1]])
    ),
    "a threshold that is no number": lambda: changed(
        PairVerifier(NCA(2).fit(*points())), threshold_=float("nan")
    ),
}


HONEST = {
    "codes": lambda: encoder(codes()),
    "first dropped": lambda: encoder(codes(), drop="first"),
    "dropped where there are two": lambda: encoder(
        np.column_stack([codes()[:, 0] > 0, codes()[:, 1]]), drop="if_binary"
    ),
    "rare ones": lambda: encoder(codes(), **RARE),
    "rare ones of both": lambda: encoder(codes(), max_categories=2),
    "none rare": lambda: encoder(codes(), max_categories=30),
    "rare ones and a dropped one": lambda: encoder(codes(), drop="first", max_categories=3),
    "NaN": lambda: encoder(np.where(codes() == 7, np.nan, codes())),
    "text": lambda: encoder(frame()[["kind"]]),
    "text and nothing": lambda: encoder(
        pd.DataFrame({"kind": np.array(["oak", None, "elm"] * 8, dtype=object)})
    ),
    "text in its own order": lambda: encoder(
        frame()[["kind"]], categories=[np.array(["oak", "elm", "fir"], dtype=object)]
    ),
    "truth": lambda: encoder(codes() > 1),
    "ordinal": lambda: OrdinalEncoder(max_categories=3).fit(codes()),
    "a column without values": lambda: changed(
        StandardScaler().fit(points()[0]), mean_=np.array([np.nan, 0.0, 0.0])
    ),
    "nothing fitted": lambda: StandardScaler(),
    "no deviation": lambda: StandardScaler(with_std=False).fit(points()[0]),
    "columns by slices": lambda: ColumnTransformer(
        [("a", StandardScaler(), slice(0, 2)), ("b", "drop", [2])]
    ).fit(points()[0]),
    "columns by a mask": lambda: ColumnTransformer(
        [("a", StandardScaler(), [True, False, True])], remainder=MinMaxScaler()
    ).fit(points()[0]),
    "pairs": lambda: Pairs([[0, 1]], n_samples=2),
    "no pairs": lambda: Pairs(n_samples=0),
    "points of no class": lambda: changed(
        TransductiveDistance(2, n_neighbors=5, lam=5000.0).fit(*points()), _codes=np.full(24, -1)
    ),
}


@pytest.mark.parametrize("case", HONEST)
def test_what_a_fit_leaves_passes(case):
    check_fitted(HONEST[case]())


def test_every_object_of_the_cases_passes(every_object):
    for found in every_object:
        check_fitted(found)
    kinds = {type(found) for found in every_object}
    assert len(kinds) > 30


@pytest.mark.parametrize("case", HOSTILE)
def test_attributes_that_contradict_each_other_are_refused(case):
    with pytest.raises(ValueError, match=r"Got .*, but expected"):
        check_fitted(HOSTILE[case]())


if __name__ == "__main__":
    main(*sys.argv[1:])
