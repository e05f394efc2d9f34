"""What every learner is tested with.

The learners come from the library's own list. One that is not named here is tested as it is
without arguments: what stands here are further parameters that take another path through it. The
fixtures of ``conftest.py`` and the tests that need a list while they are collected read it here.
"""

import inspect

from sklearn.utils import get_tags

from kernelmetric import (
    KernelTrick,
    MetricClassifier,
    MetricRegressor,
    Nystroem,
    TransductiveDistance,
    learners,
)
from kernelmetric.learners import (
    DLA,
    DNE,
    ITML,
    LDA,
    LFDA,
    LMCA,
    LMNN,
    LPP,
    LSML,
    MCML,
    MLKR,
    MMC,
    NCA,
    RCA,
    RFM,
    SCML,
    SDML,
    IdealizedKernel,
    SpectralLearner,
)

VARIANTS = {
    NCA: [NCA(), NCA(2), NCA(reg=0.1)],
    LMNN: [LMNN(), LMNN(2), LMNN(reg=0.5)],
    LMCA: [LMCA(), LMCA(2), LMCA(2, reg=0.5)],
    MCML: [MCML(), MCML(2, reg=0.5)],
    MLKR: [MLKR(), MLKR(2), MLKR(reg=0.1)],
    DNE: [DNE(), DNE(2), DNE(reg=0.05)],
    DLA: [DLA(beta=2.0), DLA(2, n_neighbors=2, n_others=4, beta=0.3)],
    LDA: [LDA(), LDA(1, shrinkage=0.1)],
    LFDA: [LFDA(), LFDA(2, n_neighbors=3, shrinkage=0.1)],
    LPP: [LPP(), LPP(2, n_neighbors=5, shrinkage=0.1)],
    RCA: [RCA(), RCA(2, shrinkage=0.1)],
    RFM: [RFM(), RFM(2, regression="rbf"), RFM(diagonal=True)],
    ITML: [ITML(), ITML(gamma=10.0)],
    IdealizedKernel: [
        IdealizedKernel(C=3.0, nu=0.8),
        IdealizedKernel(C=3.0, nu=0.8, psd="clip"),
    ],
    MMC: [MMC(tol=1e-8), MMC(diagonal=True, tol=1e-8)],
    LSML: [LSML(max_tuples=6000, tol=1e-10), LSML(gamma=1.0, max_tuples=6000, tol=1e-10)],
    SCML: [SCML(n_basis=20), SCML(beta=5e-2, n_basis=20)],
    SDML: [SDML(tol=1e-10), SDML(balance=0.9, tol=1e-10)],
}
# One that fits whatever it is given: scikit-learn's checks, and ours of bad input, bring points
# of one feature, of few rows, or of extreme size.
ROBUST = {
    LMNN: [LMNN()],
    LMCA: [LMCA(2)],
    DLA: [DLA(1)],
    LDA: [LDA(), LDA(shrinkage=0.0)],
    IdealizedKernel: [IdealizedKernel(C=3.0, nu=0.8)],
}


def variants(learns_from=None):
    """All learners, with their further parameters; only those that learn from this."""
    return [
        variant
        for kind in learners.LEARNERS
        if learns_from in (None, kind.learns_from)
        for variant in VARIANTS.get(kind, [kind()])
    ]


def robust(learns_from=None):
    """At least one of each, whose parameters suit any data."""
    return [
        variant
        for kind in learners.LEARNERS
        if learns_from in (None, kind.learns_from)
        for variant in ROBUST.get(kind, [kind()])
    ]


def weighable(learns_from=None):
    """Those whose fit takes weights."""
    return [
        a for a in variants(learns_from) if "sample_weight" in inspect.signature(a.fit).parameters
    ]


def descending():
    """Those whose fit is a descent from a start."""
    return [a for a in variants() if "init" in a.get_params()]


def spectral():
    """Those whose fit is one eigenproblem."""
    return [a for a in variants() if isinstance(a, SpectralLearner)]


# scikit-learn asks that whole weights be repeated rows, to the last digits. Weights are importance
# here: that holds for sums over rows alone. For what else it does not hold, and why.
_NEIGHBOURS = "copies of a row are neighbours of each other, and a row is not its own"
_PAIRS = "copies of a row are similar pairs, and a row is not a pair with itself"
_LEFT_OUT = "a copy of a row that is left out predicts it"
_TOLERANCE = "two descents end within a tolerance of one optimum, and the check compares digits"
NOT_REPEATED_ROWS = {
    **dict.fromkeys((NCA, MCML, MLKR, LMNN, LMCA, DNE, DLA, LFDA, LPP), _NEIGHBOURS),
    **dict.fromkeys((MMC, SDML, IdealizedKernel), _PAIRS),
    **dict.fromkeys((LSML, SCML), "comparisons are drawn from rows, and copies are more rows"),
    RFM: _LEFT_OUT,
    ITML: _TOLERANCE,
    RCA: "a chunk of one row says nothing of what varies inside chunks, whatever it counts",
    Nystroem: "landmarks are drawn from rows, whatever they count",
    KernelTrick: "the training points are the basis, and copies are more of them",
    MetricClassifier: "folds of repeated rows are other folds, and copies are more neighbours",
    MetricRegressor: "folds of repeated rows are other folds, and copies are more neighbours",
    TransductiveDistance: "the graph of points, of which copies are more, counts all rows alike",
}


def not_repeated_rows(estimator):
    """The checks of scikit-learn that ask for repeated rows where weights are importance."""
    reason = NOT_REPEATED_ROWS.get(type(estimator))
    if isinstance(estimator, LDA) and estimator.shrinkage == 0:
        reason = "the check has fewer rows than features: without shrinkage no one solution is best"
    if reason is None:
        return {}
    name = "check_sample_weight_equivalence_on_{}_data"
    return {name.format(kind): reason for kind in ("dense", "sparse")}


# scikit-learn asks that fit_transform be fit and then transform.
_LEFT_OUT_PLACES = "training rows are placed as if they were left out, as by its own TargetEncoder"


def left_out_places(estimator):
    """The checks of scikit-learn that ask for one place where a training row has another."""
    learner = getattr(estimator, "learner", None)
    if learner is None or not isinstance(estimator.space, str):
        return {}
    if not (hasattr(learner, "transform") and get_tags(learner).target_tags.required):
        return {}
    if getattr(estimator, "n_components", None) is not None:  # a search, which cuts components
        return {}
    names = ("check_transformer_general", "check_transformer_data_not_an_array")
    return dict.fromkeys(names, _LEFT_OUT_PLACES)


def expected_failures(estimator):
    """The checks of scikit-learn that ask for what is not so, and why."""
    return not_repeated_rows(estimator) | left_out_places(estimator)


def readme_row():
    """The line of the README's table of names."""
    words = {"labels": "", "points": "from points alone ", "chunks": "from chunks "}
    words |= {"targets": "for regression ", "pairs": "from pairs "}
    words |= {"comparisons": "from comparisons "}
    groups = []
    for need, lead in words.items():
        named = [f"`{kind.__name__}`" for kind in learners.LEARNERS if kind.learns_from == need]
        groups.append(lead + ", ".join(named))
    return f"| learners | {'; '.join(groups)} |"
