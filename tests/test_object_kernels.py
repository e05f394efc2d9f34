"""What every kernel of objects promises, run over the registry; then each one's own formula."""

import importlib.util
import pickle
import re
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from kernelmetric import KPCA, LDA, Kernelized, KernelizedCV, KernelTrick, Nystroem, load, save
from kernelmetric.inputs import Objects
from kernelmetric.kernels import (
    RBF,
    Convolutions,
    FromDistance,
    FunctionKernel,
    GlobalAlignment,
    MeanEmbedding,
    MinMax,
    Molecules,
    NGrams,
    ObjectKernel,
    Tanimoto,
    WeisfeilerLehman,
)
from kernelmetric.kernels._distance import _of_series
from kernelmetric.kernels._registry import OBJECT_KERNELS
from kernelmetric.kernels._series import SeriesKernel
from kernelmetric.selection import KernelChoice
from object_examples import CLASSES, EXAMPLES, LetterCounts, N, SharedLetters, graphs, series, words

OURS = [SharedLetters, LetterCounts]


def _name(kernel):
    """Its repr without addresses: each process of the tests has to call a case the same."""
    return re.sub(r" at 0x\w+", "", repr(kernel))


@pytest.fixture(params=EXAMPLES, ids=_name)
def kernel(request):
    return clone(request.param, safe=False)


@pytest.fixture
def objects(kernel):
    return next(given for known, (given, _) in EXAMPLES.items() if repr(known) == repr(kernel))()


@pytest.fixture
def junk(kernel):
    return next(bad for known, (_, bad) in EXAMPLES.items() if repr(known) == repr(kernel))


def test_every_kernel_of_the_registry_is_among_the_examples():
    there = {type(known) for known in EXAMPLES} | {Molecules}  # which needs rdkit
    assert set(OBJECT_KERNELS) <= there
    assert all(known.takes_objects for known in EXAMPLES)


@pytest.mark.every(3)
def test_values_are_symmetric_and_positive_semi_definite(kernel, objects):
    bound = kernel.bind(objects)
    K = bound(objects)
    assert K.shape == (N, N)
    assert K == pytest.approx(K.T, abs=1e-12)
    assert np.linalg.eigvalsh(K)[0] > -1e-9 * np.trace(K)
    assert bound.diag(objects) == pytest.approx(np.diag(K), abs=1e-9)
    assert np.ptp(K) > 0.1 * np.abs(K).max()


def test_a_picture_is_a_drawing_in_svg_or_there_is_none(kernel, objects):
    some = objects if isinstance(kernel, ObjectKernel) else []  # packed bits have no picture
    pictures = [kernel.picture(kernel.read(item)) for item in some]
    drawn = [ElementTree.fromstring(picture) for picture in pictures if picture is not None]
    assert len(drawn) in (0, N)
    of_series = isinstance(kernel, SeriesKernel) or getattr(kernel, "distance", "") == "dtw"
    assert bool(drawn) == (of_series or isinstance(kernel, Molecules))
    kinds = {part.tag.rpartition("}")[2] for root in drawn for part in root.iter()}
    assert kinds <= {"svg", "path", "polyline"}
    assert all(len(root) for root in drawn)
    assert not drawn or len(set(pictures)) > N // 2


@pytest.mark.every(2)
def test_blocks_are_parts_of_the_whole(kernel, objects):
    bound = kernel.bind(objects)
    K, points = bound(objects), bound.points(objects)
    rows = np.array([5, 2, 13])
    assert bound(points[rows], points[8:]) == pytest.approx(K[np.ix_(rows, range(8, N))], abs=1e-9)
    assert bound(objects[:1], objects[3:4]) == pytest.approx(K[:1, 3:4], abs=1e-9)
    assert bound(points[:0], points).shape == (0, N)
    fresh = (
        bound.points([objects[i] for i in rows])
        if not kernel.get_params().get("packed")
        else (bound.points(objects[rows]))
    )
    assert bound(fresh) == pytest.approx(K[np.ix_(rows, rows)], abs=1e-9)


@pytest.mark.every(2)
def test_a_bound_kernel_is_concrete_and_the_original_as_it_was(kernel, objects):
    before = repr(kernel)
    bound = kernel.bind(objects)
    assert bound.is_bound
    assert repr(kernel) == before
    again = clone(bound, safe=False).bind(objects)
    assert again(objects) == pytest.approx(bound(objects), abs=1e-12)
    if not kernel.is_bound:
        with pytest.raises(ValueError, match="still wait for data"):
            kernel(objects)


def test_junk_is_refused_by_its_row(kernel, objects, junk):
    for bad in junk:
        listed = list(objects)
        listed[3] = bad
        with pytest.raises(ValueError, match="in row 3, but"):
            kernel.bind(listed)


def test_what_is_no_list_of_objects_is_refused(kernel):
    for X in ("text", {"a": 1}, 3, None):
        with pytest.raises((TypeError, ValueError), match=r"but.*expected"):
            kernel.bind(X)
    with pytest.raises(ValueError, match=r"0 sample\(s\)|minimum of 2"):
        KPCA(2, kernel=kernel).fit(np.zeros((0, 3), dtype=np.uint8) if _packed(kernel) else [])


def _packed(kernel):
    return bool(kernel.get_params().get("packed"))


@pytest.mark.every(9)
@pytest.mark.parametrize("space", ["auto", KPCA(4), Nystroem(12, random_state=0), KernelTrick()])
def test_a_metric_is_learned_saved_and_loaded(kernel, objects, space, tmp_path):
    metric = Kernelized(LDA(1), kernel=kernel, space=space).fit(objects, CLASSES)
    E = metric.transform(objects)
    near = KNeighborsClassifier(3).fit(E, CLASSES).score(E, CLASSES)
    assert near > 0.7
    assert (
        pickle.loads(pickle.dumps(metric)).transform(objects) == pytest.approx(E)
        if not _has_function(kernel)
        else True
    )
    if not _has_function(kernel):
        again = load(save(metric, tmp_path / "a.km"), kernels=OURS)
        assert again.transform(objects) == pytest.approx(E, abs=1e-12)
        assert again.places(objects) == pytest.approx(metric.places(objects), abs=1e-12)
    assert metric.places(objects[:5]) == pytest.approx(metric.transform(objects[:5]))


def _has_function(kernel):
    return callable(getattr(kernel, "distance", None))


@pytest.mark.every(4)
def test_the_fit_keeps_nothing_of_the_callers(kernel, objects):
    metric = Kernelized(LDA(1), kernel=kernel).fit(objects, CLASSES)
    E = metric.transform(objects)
    again = type(objects)(objects) if isinstance(objects, list) else objects.copy()
    again = [np.array(item) for item in again] if isinstance(objects[0], np.ndarray) else again
    for item in objects:
        if isinstance(item, np.ndarray):
            item[...] = 0
    objects[:] = objects[::-1]
    E_new = metric.transform(np.array(again) if _packed(kernel) else again)
    assert E_new == pytest.approx(E, abs=1e-12)


@pytest.mark.every(4)
def test_pipelines_and_folds_take_objects(kernel, objects):
    model = make_pipeline(Kernelized(LDA(1), kernel=kernel), KNeighborsClassifier(3))
    assert np.mean(cross_val_score(model, objects, CLASSES, cv=3)) > 0.6


@pytest.mark.parametrize("kind", ["array", "series", "frame"])
def test_lists_arrays_and_columns_are_the_same(kind):
    pd = pytest.importorskip("pandas")
    listed, metric = words(), Kernelized(LDA(1), kernel=NGrams(2))
    column = np.array(listed, dtype=object)
    given = {"array": column, "series": pd.Series(listed), "frame": pd.DataFrame({"w": listed})}
    E = clone(metric).fit(listed, CLASSES).transform(listed)
    assert metric.fit(given[kind], CLASSES).transform(given[kind]) == pytest.approx(E)
    assert metric.transform(np.array(listed)) == pytest.approx(E)


def test_series_of_an_array_are_not_taken_for_tuples():
    X = np.random.RandomState(0).standard_normal((N, 2, 15)) + CLASSES[:, None, None]
    kernel = GlobalAlignment(1.0, scale=False)
    metric = Kernelized(LDA(1), kernel=kernel).fit(X, CLASSES)
    E = Kernelized(LDA(1), kernel=kernel).fit(list(X), CLASSES).transform(list(X))
    assert metric.transform(X) == pytest.approx(E)
    assert metric.fit_transform(X, CLASSES) == pytest.approx(metric.places(X))
    padded = np.concatenate([X, np.full((N, 2, 3), np.nan)], axis=2)
    assert metric.transform(padded) == pytest.approx(E)


def test_copies_of_objects_count_as_one():
    listed = words()
    twice, labels = listed + listed[:8], np.append(CLASSES, CLASSES[:8])
    metric = Kernelized(LDA(1), kernel=NGrams(2))
    with pytest.warns(UserWarning, match="8 copies of other rows among 24"):
        metric.fit(twice, labels)
    weights = np.ones(N)
    weights[:8] = 2.0
    once = clone(metric).fit(listed, CLASSES, sample_weight=weights)
    assert metric.transform(listed) == pytest.approx(once.transform(listed))
    assert metric.embedding_[:8] == pytest.approx(metric.embedding_[N:])


def test_kernels_of_numbers_and_of_objects_do_not_mix():
    with pytest.raises(ValueError, match="kernels of objects beside kernels of rows of numbers"):
        (NGrams(2) + RBF(gamma=1.0))(words())
    with pytest.raises(TypeError, match="expected rows of numbers"):
        RBF(gamma=1.0)(Objects(words()))
    with pytest.raises(TypeError, match=f"{N} objects, such as 'banana"):
        np.asarray(Objects(words()))
    with pytest.raises(ValueError, match="rows of numbers, of objects"):
        KernelizedCV(LDA(1), kernels=[NGrams(2), "rbf"]).fit(words(), CLASSES)


# --- each formula beside a plain one --------------------------------------------------------------


def grams(text, n):
    return Counter(text[i : i + n] for i in range(max(len(text) - n, 0) + 1)) if text else Counter()


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("similarity", ["cosine", "minmax", "tanimoto"])
def test_n_grams_are_counted_as_they_are_by_hand(n, similarity):
    rng = np.random.RandomState(n)
    draw = [["".join(rng.choice(list(some), rng.randint(0, 8))) for _ in range(12)]
            for some in ("abcé", "abq")]  # fmt: skip
    K = NGrams(n, similarity=similarity)(*draw)
    for i, a in enumerate(draw[0]):
        for j, b in enumerate(draw[1]):
            A, B = grams(a, n), grams(b, n)
            if similarity == "minmax":
                shared, either = sum((A & B).values()), sum((A | B).values())
            else:
                shared = sum(A[g] * B[g] for g in A)
                squares = [sum(v * v for v in C.values()) for C in (A, B)]
                either = np.sqrt(np.prod(squares))
                either = sum(squares) - shared if similarity == "tanimoto" else either
            nothing = float(similarity != "cosine")
            assert K[i, j] == pytest.approx(shared / either if either else nothing)


def test_gaps_leave_letters_out_and_words_are_symbols():
    kernel = NGrams(2, gaps=1)
    assert kernel(["abc", "axc"])[0, 1] == pytest.approx(1 / 3)  # of ab, bc, a.c the last
    assert NGrams(2)(["abc", "axc"])[0, 1] == 0
    by_words = NGrams((1, 2), unit="words")(["the red fox", "red fox the", "red", "Fox red"])
    assert by_words[0, 1] == pytest.approx(4 / 5)
    assert by_words[2, 3] == pytest.approx(1 / np.sqrt(3))
    for wrong in ({"n": 0}, {"n": (3, 2)}, {"n": "three"}, {"gaps": -1}, {"unit": "lines"}):
        with pytest.raises(ValueError, match="expected"):
            NGrams(**({"n": 2} | wrong))(["ab", "bc"])


def test_min_max_is_what_two_points_share_dense_or_sparse():
    rng = np.random.RandomState(0)
    X = rng.poisson(1.0, (15, 6)).astype(float)
    X[3] = 0
    K = MinMax()(X, X[:5])
    for i, j in np.ndindex(K.shape):
        most = np.maximum(X[i], X[j]).sum()
        expected = np.minimum(X[i], X[j]).sum() / most if most else 1.0
        assert K[i, j] == pytest.approx(expected)
    assert MinMax()(sparse.csr_array(X), sparse.csr_array(X[:5])) == pytest.approx(K)
    bits = (X > 1).astype(float)
    assert MinMax()(bits) == pytest.approx(Tanimoto()(bits))
    with pytest.raises(ValueError, match="none of them negative"):
        MinMax()(-X)
    with pytest.raises(ValueError, match="whole numbers"):
        MinMax()(sparse.csr_array(X / 3))


def test_packed_bits_are_bits_and_the_nearest_are_exact(monkeypatch):
    from kernelmetric.compute.reductions import _bits

    rng = np.random.RandomState(0)
    bits = rng.random_sample((150, 40)) < rng.uniform(0, 0.6, (150, 1))
    bits[:2] = False
    packed = np.packbits(bits, axis=1)
    K = Tanimoto()(bits.astype(float))
    assert Tanimoto(packed=True)(packed) == pytest.approx(K, abs=1e-6)
    expected = np.argsort(-K.astype(np.float32), axis=1, kind="stable")[:, :7]
    for block in (8192, 16):
        monkeypatch.setattr(_bits, "_POINTS", block)
        monkeypatch.setattr(_bits, "_QUERIES", 32)
        values, rows = Tanimoto().neighbors(packed, 7)
        np.testing.assert_array_equal(rows, expected)
        assert values == pytest.approx(np.take_along_axis(K, rows, axis=1), abs=1e-6)
    with pytest.raises(ValueError, match=">= 1 and <= 150"):
        Tanimoto().neighbors(packed, 0)
    with pytest.raises(ValueError, match="array of bytes"):
        Tanimoto().neighbors(bits, 3)


def alignments(x, y, width, window):
    M = np.zeros((x.shape[1] + 1, y.shape[1] + 1))
    M[0, 0] = 1
    for i, j in np.ndindex(x.shape[1], y.shape[1]):
        e = np.exp(-np.sum((x[:, i] - y[:, j]) ** 2) / (2 * width**2))
        e *= max(0.0, 1 - abs(i - j) / window)
        M[i + 1, j + 1] = e / (2 - e) * (M[i, j] + M[i, j + 1] + M[i + 1, j])
    return M[-1, -1]


@pytest.mark.every(2)
@pytest.mark.parametrize("window", [3, 30])
def test_global_alignment_sums_over_all_alignments(window, monkeypatch):
    some = series()[:6]
    kernel = GlobalAlignment(width=2.5, window=window, scale=False)
    own = [alignments(x, x, 2.5, window) for x in some]
    expected = [[alignments(x, y, 2.5, window) for y in some] for x in some]
    expected /= np.sqrt(np.outer(own, own))
    assert kernel(some) == pytest.approx(expected, rel=1e-9)
    monkeypatch.setattr("kernelmetric.kernels._series._CACHED", 1)  # few pairs at a time
    assert kernel(some, some[1:4]) == pytest.approx(np.array(expected)[:, 1:4], rel=1e-9)
    long = [np.sin(np.arange(900) / 9 + i) for i in range(2)]
    K = GlobalAlignment(width=0.1, window=40)(long)
    assert np.isfinite(K).all()
    assert np.diag(K) == pytest.approx(1.0)


def test_dynamic_time_warping_is_the_least_cost():
    some = [(s - s.mean(1, keepdims=True)) / s.std(1, keepdims=True) for s in series()[:6]]
    D = _of_series(some, some)
    for a, x in enumerate(some):
        for b, y in enumerate(some):
            n, m = x.shape[1], y.shape[1]
            reach = max(int(np.ceil(0.1 * max(n, m))), abs(n - m))
            C = np.full((n + 1, m + 1), np.inf)
            C[0, 0] = 0
            for i, j in np.ndindex(n, m):
                if abs(i - j) <= reach:
                    before = min(C[i, j], C[i, j + 1], C[i + 1, j])
                    C[i + 1, j + 1] = np.sum((x[:, i] - y[:, j]) ** 2) + before
            assert D[a, b] == pytest.approx(np.sqrt(C[-1, -1]))


def test_a_drawn_series_keeps_its_ends_and_its_spikes():
    x = np.zeros(3000)
    x[1234], x[2000] = 1e308, -1e308
    drawn = GlobalAlignment().picture(np.stack([x, np.ones(3000)]))
    lines = [
        np.array([point.split(",") for point in line.split()], dtype=float)
        for line in re.findall("points='([^']*)'", drawn)
    ]
    assert len(lines) == 2
    (left, _), (right, _) = lines[0][0], lines[0][-1]
    high, low = lines[0][lines[0][:, 1].argmin()], lines[0][lines[0][:, 1].argmax()]
    assert (left, high[1], low[1]) == (2.0, 2.0, 58.0)
    assert right > 230
    np.testing.assert_allclose([high[0], low[0]], 2 + 236 * np.array([1234, 2000]) / 2999, atol=1)
    assert np.ptp(lines[1][:, 1]) == 0.0


def test_convolutions_count_how_often_a_pattern_is_above_a_threshold():
    rng = np.random.RandomState(0)
    some = [rng.standard_normal(rng.randint(30, 34)) for _ in range(5)]
    kernel = Convolutions(168).bind(some)
    known = kernel.learned
    spreads = np.where(np.isinf(known["spreads"]), 0.0, known["spreads"])
    shares = kernel.features(kernel.points(some).listed()) * np.sqrt(168) * spreads
    shares += known["means"]
    first = np.full(9, -1.0)
    first[:3] = 2.0  # of the patterns, in order of their places
    d = int(known["dilations"][0])
    for x, share in zip(some, shares, strict=True):
        wide = np.concatenate([np.zeros(4 * d), x, np.zeros(4 * d)])
        C = sum(w * wide[i * d : i * d + len(x)] for i, w in enumerate(first))
        assert share[0] == pytest.approx(np.mean(C > known["thresholds"][0]))
    with pytest.raises(ValueError, match="series of 2 channels"):
        kernel(series())


def test_neighbourhoods_of_graphs_do_not_know_the_order_of_nodes():
    rng = np.random.RandomState(0)
    turned = []
    for edges, labels in graphs():
        order = rng.permutation(len(labels))
        place = np.argsort(order)
        turned.append(([(place[a], place[b]) for a, b in edges], [labels[i] for i in order]))
    assert np.diag(WeisfeilerLehman()(graphs(), turned)) == pytest.approx(1.0)
    named = [([("a", "b")], {"a": "C", "b": "O"}), ([(0, 1)], ["O", "C"])]
    assert WeisfeilerLehman()(named) == pytest.approx(np.ones((2, 2)))


def test_a_distance_becomes_the_nearest_kernel_and_says_what_is_lost():
    points = [np.array([x]) for x in np.random.RandomState(0).standard_normal(20)]

    def distance(a, b):
        return float(abs(a[0] - b[0]))

    kernel = FromDistance(distance, 2.0).bind(points)
    width = kernel.learned["width"]
    K = np.exp([[-distance(a, b) / width for b in points] for a in points])
    assert kernel(points) == pytest.approx(K, abs=1e-6)  # positive definite as it is
    assert kernel.negative_share_ < 1e-12
    few = FromDistance(distance, 2.0, n_references=5).bind(points)
    assert np.linalg.eigvalsh(few(points))[0] > -1e-9
    assert np.linalg.matrix_rank(few(points), tol=1e-8) == 5
    with pytest.warns(UserWarning, match="% of the eigenvalues"):
        FromDistance(lambda a, b: float(int(9e3 * abs(a[0] * b[0])) % 9)).bind(points)
    with pytest.raises(ValueError, match="symmetric distance"):
        FromDistance(lambda a, b: float(a[0] > b[0])).bind(points)
    with pytest.raises(ValueError, match="'dtw', 'matches', or one of"):
        FromDistance("edit").bind(points)


def test_sets_are_compared_by_the_means_of_their_vectors():
    rng = np.random.RandomState(0)
    sets = [rng.standard_normal((k, 2)) for k in (1, 3, 4)]
    m = np.array([[RBF(gamma=0.7)(S, T).mean() for T in sets] for S in sets])
    expected = m / np.sqrt(np.outer(np.diag(m), np.diag(m)))
    assert MeanEmbedding(RBF(gamma=0.7))(sets) == pytest.approx(expected)
    with pytest.raises(ValueError, match="rows of numbers"):
        MeanEmbedding(NGrams(2)).bind(sets)


def test_a_function_of_objects_gets_lists_of_them():
    listed = words()

    def lists(A, B):
        assert isinstance(A, list)
        return np.array([[len(set(a) & set(b)) for b in B] for a in A])

    def pairs(a, b):
        return len(set(a) & set(b))

    K = lists(listed, listed)
    for function, form in ((lists, "blocks"), (pairs, "points")):
        kernel = FunctionKernel(function, objects=True).bind(listed)
        assert kernel.form == form
        assert kernel(listed) == pytest.approx(K)
        assert kernel.diag(listed) == pytest.approx(np.diag(K))


@pytest.mark.skipif(importlib.util.find_spec("rdkit") is None, reason="needs rdkit")
def test_molecules_share_counts_of_substructures():
    from rdkit import Chem, DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    smiles = ["CCO", "CCCO", "c1ccccc1O", "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"]
    kernel = Molecules(("circular",), radius=2)
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, includeChirality=True)
    found = [generator.GetSparseCountFingerprint(Chem.MolFromSmiles(s)) for s in smiles]
    expected = [[DataStructs.TanimotoSimilarity(a, b) for b in found] for a in found]
    assert kernel(smiles) == pytest.approx(np.array(expected))
    assert kernel(smiles)[3, 4] < 1
    assert Molecules()(smiles[:2]).shape == (2, 2)
    with pytest.raises(ValueError, match="fingerprints='circular'"):
        Molecules("circular")(smiles)


# --- what is like an object of the kind, and is none ----------------------------------------------

A_SERIES, A_SET = [1.0, 2.0, 4.0], [[0.0, 1.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    ("kernel", "good", "bad"),
    [
        (GlobalAlignment(), A_SERIES, ["1", "2", "3"]),
        (GlobalAlignment(), A_SERIES, "123"),
        (Convolutions(84), A_SERIES, np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]")),
        (GlobalAlignment(), A_SERIES, np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])),
        (MeanEmbedding(), A_SET, [["1", "2"], ["3", "4"]]),
        (WeisfeilerLehman(), ([(0, 1)], "CO"), ([(0, 1, 2), (1, 2, 0)], "CNO")),
        (WeisfeilerLehman(), ([(0, 1)], "CO"), ([(0.5, 1)], "CO")),
        (NGrams(2), "text", b"text"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_only_looks_like_an_object_is_refused_by_its_row(kernel, good, bad):
    with pytest.raises(ValueError, match="in row 2, but"):
        kernel.bind([good, good, bad])([good])


@pytest.mark.parametrize(
    ("kernel", "two", "one"),
    [
        (GlobalAlignment(), np.ones((2, 6)), np.ones((1, 6))),
        (Convolutions(84), np.ones((2, 6)), np.ones((1, 6))),
        (FromDistance("dtw"), np.ones((2, 6)), np.ones((1, 6))),
        (MeanEmbedding(), np.ones((3, 2)), np.ones((3, 1))),
        (FromDistance("matches"), np.ones((3, 2)), np.ones((3, 1))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_of_another_width_are_refused(kernel, two, one):
    some = [two * np.arange(1, two.shape[1] + 1) * (1 + i) for i in range(3)]
    bound = kernel.bind(some)
    for asked in ([one], [two, one]):
        with pytest.raises(ValueError, match="expected"):
            bound(asked, some)
    with pytest.raises(ValueError, match="expected"):
        kernel.bind([two, one])


def test_packed_bits_of_another_number_are_refused():
    kernel = Tanimoto(packed=True)
    with pytest.raises(ValueError, match="of 3 and of 4 bytes"):
        kernel(np.ones((2, 3), np.uint8), np.ones((2, 4), np.uint8))
    with pytest.raises(ValueError, match="of 4 and of 3 bytes"):
        kernel.neighbors(np.ones((2, 3), np.uint8), 1, np.ones((2, 4), np.uint8))
    with pytest.raises(ValueError, match=">= 1 and <= 2"):
        kernel.neighbors(np.ones((2, 3), np.uint8), True)


def test_an_edge_counts_once_however_it_is_written():
    graphs = [([(0, 1), (1, 0), (1, 2)], "CCO"), ([(1, 0), (2, 1)], "CCO")]
    assert WeisfeilerLehman()(graphs) == pytest.approx(np.ones((2, 2)))


def test_channels_are_scaled_by_themselves_and_large_numbers_are_none_too_many():
    X = np.random.RandomState(0).standard_normal((6, 2, 12))
    sizes = np.array([1.0, 1e-14])[:, None]
    for scaled in (1e200 * X, sizes * X):
        kernel = GlobalAlignment().bind(X)
        assert kernel(scaled) == pytest.approx(kernel(X))
        assert _of_series(list(scaled), list(scaled)) == pytest.approx(_of_series(list(X), list(X)))


def test_large_counts_are_exact_and_take_no_longer():
    long = ["ab" * 20_000 + end for end in ("x", "yy")]
    C = [grams(text, 2) for text in long]
    S = np.array([[sum(a[g] * b[g] for g in a) for b in C] for a in C], dtype=np.float64)
    own = np.sqrt(np.diag(S))
    gap = 1 - S / np.outer(own, own)
    assert 1 - NGrams(2)(long)[0, 1] == pytest.approx(gap[0, 1], rel=1e-3)
    few, many = 2 * [[3.0, 0.0, 5.0]], [[1e9, 2.0, 4.0]]
    assert MinMax()(sparse.csr_array(few), sparse.csr_array(many)) == pytest.approx(
        MinMax()(np.array(few), np.array(many))
    )
    assert MinMax()(sparse.csr_array(1e9 * np.eye(3))) == pytest.approx(np.eye(3))


# --- the choice among kernels ---------------------------------------------------------------------


def test_the_kernel_that_predicts_left_out_rows_best_is_chosen():
    rng = np.random.RandomState(0)
    texts = ["".join(rng.choice(list("ab"), 12)) for _ in range(40)]
    y = np.array([text.count("aba") for text in texts]) + 0.01 * rng.standard_normal(40)
    bound = KernelChoice([NGrams(1), NGrams(3), NGrams(9)]).bind(texts, y)
    assert bound.n == 3
    errors = bound.candidates_
    assert min(errors, key=errors.get) == "NGrams(n=3)"
    K, ridge = NGrams(3)(texts), bound.ridge_
    wrong = []
    for i in range(40):  # ridge regression with a free constant, a row left out
        rest = np.delete(np.arange(40), i)
        mean, H = y[rest].mean(), np.eye(39) - 1 / 39
        k = K[np.ix_(rest, rest)]
        alpha = np.linalg.solve(H @ k @ H + ridge * np.eye(39), y[rest] - mean)
        wrong.append(mean + (K[i, rest] - k.mean(axis=0)) @ H @ alpha - y[i])
    assert errors["NGrams(n=3)"] == pytest.approx(np.mean(np.square(wrong)) / y.var(), rel=0.05)
    assert NGrams().bind(texts).n == (1, 3)
    assert KernelChoice([NGrams(2), NGrams(3)]).bind(texts, np.zeros(40)).n == 2
    with pytest.raises(ValueError, match="Got no kernels"):
        KernelChoice([]).bind(np.eye(40), y)


def test_an_open_kernel_becomes_what_labels_choose():
    rng = np.random.RandomState(0)
    texts = ["".join(rng.choice(list("acgt"), 30)) for _ in range(60)]
    y = np.array(["acg" in text or "tta" in text for text in texts]).astype(int)
    metric = Kernelized(LDA(1), kernel="ngrams").fit(texts, y)
    assert metric.kernel_.n != "auto"
    assert "ridge regression on points left out" in metric.recipe_.reasons["kernel"]
    again = Kernelized(LDA(1), kernel="ngrams", recipe=metric.recipe_).fit(texts, y)
    assert repr(again.kernel_) == repr(metric.kernel_)
