"""Transductive distance learning."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernelmetric._warnings import warn
from kernelmetric.compute import require_memory, to_numpy
from kernelmetric.compute.reductions import map_points
from kernelmetric.compute.watch import time_kept
from kernelmetric.inputs import check_points, device_like, unchanged_on_failure, warn_of_far_cells
from kernelmetric.inputs._parameters import COUNT, COUNT_OR_NONE, LARGEST, Numbers, check_parameters
from kernelmetric.learners._checks import check_spread
from kernelmetric.solvers import column_signs
from kernelmetric.transductive import _given
from kernelmetric.transductive._choice import POINTS, label_mass
from kernelmetric.transductive._classifying import FewLabels
from kernelmetric.transductive._learn import learn, peak_bytes, placing_seconds, rows_in_time
from kernelmetric.transductive._penalties import Geometry, coordinates_of
from kernelmetric.transductive._shares import nearest_evidence
from kernelmetric.transductive._sizes import soft_shares

_PLACED, _POWER = 7, 2  # neighbours between which a new point lies, of one over squares
_LAM = Numbers(Real, 0, LARGEST, above=True, words=("auto",))  # or infinity


@dataclass(eq=False, repr=False)
class TransductiveDistance(FewLabels):
    r"""A metric on labelled and unlabelled points together, from few labels and much geometry.

    One of two methods. By diffusion, scores F of classes minimise the squared error at labels plus
    :math:`\lambda\, \mathrm{tr}(F^\top L F)` with the Laplacian L of a graph of neighbours. An
    infinite λ is Poisson learning [2]_. A point is embedded at the probabilities of its classes,
    and a label in the corner of its own. One label of each class will do.

    By eigenvectors, embeddings X of all points minimise eq. (3) of [1]_,

    .. math:: \mathrm{tr}(X^\top (C' + \lambda P) X), \qquad X^\top X = I.

    The cost C pulls near labelled points of one class together and pushes those of different
    classes apart; the penalty P keeps what is near near. The solution are the smallest
    eigenvectors. O(n² d) time for exact neighbours, then sparse products.

    Parameters
    ----------
    n_components : int, default=None
        Dimension of the embedding by eigenvectors. None chooses one of 2 to 30 by hidden labels;
        with too few of them it is ten, or their number.
    lam : float or 'auto', default='auto'
        Weight λ of the penalty. 'auto' is infinity, which leaves labels to the vote, unless hidden
        labels are clearly better found with 2⁵ to 2¹⁴ over the scale of the penalty. By diffusion
        it is 10.
    n_neighbors : int or 'auto', default='auto'
        Neighbours of each point in the graph, and in the interpolation of new points. 'auto'
        chooses 5, 10 or 20, and interpolates between 5 where the graph is another.
    penalty : str or penalty, default='laplacian'
        'laplacian', 'normalized', 'kernel', 'warped', or an object such as
        ``WarpedPenalty(RBF(gamma=2))``. The last two embed new points by formula.
    graph : str, array or callable, default='auto'
        'neighbors' joins each point with its nearest ones, 'gaussian' all points. 'auto' is the
        former where ``n_neighbors`` is a number; else hidden labels choose, up to a thousand
        points also among 'gaussian' of three widths. Where ``n_components`` and ``lam`` are open
        too, the points stay as they are unless a graph is clearly better. Or symmetric weights of
        shape (n, n), row numbers of neighbours of shape (n, k), or a function that makes them.
    prior : fitted metric or callable, default=None
        The metric to start with, None for the Euclidean one: points become ``prior.transform(X)``,
        or ``prior(X)``. In a search pass ``metric.transform``, which clones do not forget.
    cost : {'robust', 'paper'} or cost, default='robust'
        'paper' is the cost of [1]_, 'robust' bounds it. Or an object such as
        ``RobustCost(n_neighbors=10)``.
    n_votes : int, default=1
        Labelled neighbours that vote, in the embedding, on the class of a point.
    cv : int, default=5
        Folds of hidden labels, for what is chosen.
    tol : float, default=1e-4
        Largest residual of an eigenvector, relative to the norm of the matrix.
    method : {'auto', 'diffusion', 'eigenvectors'}, default='auto'
        'auto' is diffusion, unless penalty, cost, votes, dimension or λ are set, or there are no
        labels. Up to a thousand points, and from ten labels and four for each class on,
        eigenvectors are taken where they find as many hidden labels.
    class_sizes : dict, array or 'equal', default=None
        What is known of how many points, or what share, each class has: by class, in the order of
        ``classes_``, or all alike. Classes get these sizes; by diffusion only. None estimates
        shares from three labels of each class on, where labels and points say more than luck.
    warm_start : bool, default=False
        Whether a second fit on as many points starts from the embedding of the first.
    random_state : int, RandomState or None, default=None
        For folds, and the start of the eigen-solver.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The embedded training points: by diffusion, probabilities of classes; by eigenvectors, of
        orthonormal columns; where ``graph_`` is 'points', the points in coordinates of the prior.
    method_ : str
        'diffusion', 'eigenvectors', or 'points' where these stay as they are.
    eigenvalues_ : ndarray of shape (n_components,)
        Those of ``C' + λP``, ascending; of P alone where ``lam_`` is infinite; zeros by
        diffusion.
    transduction_, classes_ : ndarray
        Labels of all training points, and the classes; with labels only.
    lam_, n_neighbors_ : float, int
        λ, infinite where labels did not help, and neighbours of each point, as used.
    graph_, width_ : str, float or None
        The graph as used: 'neighbors', 'gaussian', 'given', 'points', or 'none' where the
        penalty has none; and the width of a full graph that was chosen.
    graph_scores_, dimension_scores_ : dict
        How near hidden labels were to their class, at best 1, by graph and by dimension. Empty
        by diffusion, where there was no choice, or with too few labels.
    nearest_weight_ : float
        What :math:`-\log d_c^2` counts beside the scores of a diffusion, with the distance to the
        nearest label of each class; zero where λ or the graph was given.
    lam_scores_ : dict
        Share of hidden labels found again, by λ, where it was chosen, or by diffusion.
    label_mass_ : ndarray of shape (n_components,)
        Share of each eigenvector's squared length on labelled points (or points in pairs).
    n_matvecs_ : int
        Products with the matrix that the last eigenproblem took; 0 for a dense one.
    space_, components_ : Space, ndarray of shape (n_components, rank)
        With a kernel: the coordinates of its feature space, and the linear map on them.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    MetricClassifier : Where most points have labels.
    LPP : A linear map that keeps neighbours.

    References
    ----------
    .. [1] Li, Yang and Wang, "A transductive framework of distance metric learning by spectral
       dimensionality reduction", ICML 2007.
    .. [2] Calder, Cook, Thorpe and Slepčev, "Poisson learning: graph based semi-supervised learning
       at very low label rates", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from kernelmetric import TransductiveDistance
    >>> X, truth = load_digits(return_X_y=True)
    >>> y = np.full(len(X), -1)
    >>> y[::20] = truth[::20]
    >>> semi = TransductiveDistance(n_neighbors=10, lam=200.0).fit(X, y)
    >>> bool(np.mean(semi.transduction_ == truth) > 0.9)
    True
    """

    n_components: Any = None
    lam: Any = "auto"
    n_neighbors: Any = "auto"
    _: KW_ONLY
    penalty: Any = "laplacian"
    graph: Any = "auto"
    prior: Any = None
    cost: Any = "robust"
    n_votes: int = 1
    cv: int = 5
    tol: float = 1e-4
    method: Any = "auto"
    class_sizes: Any = None
    warm_start: bool = False
    random_state: Any = None

    _allowed: ClassVar = {
        "n_components": COUNT_OR_NONE,
        "n_neighbors": Numbers(Integral, 1, words=("auto",)),
        "n_votes": COUNT,
        "cv": Numbers(Integral, 2),
        "tol": Numbers(Real, 0, LARGEST, above=True),
    }

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        similar: Any = None,
        dissimilar: Any = None,
        pairs: Any = None,
        cost_graph: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Embed the points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points, labelled or not.
        y : array-like of shape (n_samples,), default=None
            Class labels, -1 where the class is not known; among labels of text, in an array of
            objects, also None or NaN: ``np.array(["a", "b", None])``.
        similar, dissimilar : array-like of shape (n_pairs, 2), default=None
            Instead of labels: row numbers of points that are alike, and that differ.
        pairs : Pairs, default=None
            The same as an object.
        cost_graph : sparse or dense array of shape (n_samples, n_samples), default=None
            Instead of labels or pairs: symmetric weights, positive where points should be near.
            Where all are zero, the method is that of the penalty alone.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts in the cost of labels or pairs. Zero leaves the row out: it is no
            training point.

        Returns
        -------
        TransductiveDistance
            The fitted metric.
        """
        with unchanged_on_failure(self), device_like(X):
            check_parameters(self)
            if not (isinstance(self.lam, Real) and self.lam == np.inf):
                _LAM.check(self, "lam")
            X = check_points(self, X, reset=True, accept_sparse=True, ensure_min_samples=2)
            given = {"similar": similar, "dissimilar": dissimilar, "pairs": pairs}
            told = y, given, self.graph, cost_graph, sample_weight
            self._rows, X, y, given, weights = _given.counted_rows(X, *told)
            require_memory(
                self.estimate_memory(*X.shape),
                f"TransductiveDistance on {X.shape[0]} points",
                "try graph='neighbors', or fewer components.",
            )
            source = _given.read_source(y, X.shape[0], **given, cost_graph=cost_graph)
            points = _given.prior_points(self.prior, X)
            if not sparse.issparse(points):
                with np.errstate(over="ignore"):  # infinity is refused in a sentence
                    check_spread(points)
            warn_of_far_cells(X)
            earlier: Any = getattr(self, "embedding_", ()) if self.warm_start else ()
            drawn = getattr(self, "graph_", None) != POINTS.kind  # else there are no eigenvectors
            start = earlier if drawn and len(earlier) == points.shape[0] else None
            some = rows_in_time(self, points, source)
            start, weights = (part if part is None else part[some] for part in (start, weights))
            taught = points[some], source.take(some), start, weights
            shape = points.shape[0], taught[0].shape[0], points.shape[1]
            fewer = shape[1] < shape[0]
            with time_kept(placing_seconds(*shape) if fewer else 0.0):
                learned = learn(self, *taught)
            self._mass = None if fewer else weights
            self._keep(*learned, source, some, points, X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params) -> np.ndarray:
        """Embed the points, and return them embedded.

        Parameters
        ----------
        X, y : array-like
            As in :meth:`fit`.
        **fit_params : dict
            As in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            A copy of ``embedding_``.
        """
        self.fit(X, y, **fit_params)
        if len(self.embedding_) != _num_samples(X):  # rows were left out
            return self.transform(X)
        return self.embedding_.copy()

    def transform(self, X: Any) -> np.ndarray:
        """Map points, new ones too, to the coordinates in which Euclidean distance is the learned.

        With a kernel, ``f(x) = Σ α_i k(x_i, x)``. Without one, the mean of the ``n_neighbors_``
        nearest training points, weighed by the inverse squared distance. By diffusion at most seven
        count by its square, in units of how far their own neighbours are, for what the graph says;
        distances to the labels are those of the new point.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Training points get their own embedding.
        """
        check_is_fitted(self)
        X = check_points(self, X, reset=False, accept_sparse=True)
        points = _given.prior_points(self.prior, X)
        if hasattr(self, "space_"):
            with config_context(transform_output="default"):
                E = map_points(self.space_.transform(points), self.components_)
        else:
            E = self._placed(points, self._points)
        return E.astype(self.embedding_.dtype, copy=False)

    def estimate_memory(self, n_samples: int, n_features: int) -> int:
        """Bytes that a fit takes at its peak, besides the data.

        Parameters
        ----------
        n_samples, n_features : int
            Number of training points, and of features.

        Returns
        -------
        int
            An estimate, within a factor of two where the graph is ours.
        """
        return peak_bytes(self, n_samples, n_features)

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def _placed(self, points: Any, known: Any) -> np.ndarray:
        """Coordinates of points, by those that are known."""
        if getattr(self, "graph_", None) == POINTS.kind:  # which old files do not have
            points = points.toarray() if sparse.issparse(points) else points
            return points.astype(self.embedding_.dtype)
        k, spread = self.n_neighbors_, self._kind == "diffusion"
        k, power = (min(k, _PLACED), _POWER) if spread else (k, 1)
        scores = getattr(self, "_scores", None)  # which old files do not have
        if not spread or scores is None:
            E = _given.interpolate(known, self.embedding_, points, k, power)[0]
        else:  # distances to labels are known of new points too
            both = np.hstack([self.embedding_, scores])
            both, there = _given.interpolate(known, both, points, k, power, self._reach)
            E, F = np.hsplit(both, 2)
            F = F + self._counted * nearest_evidence(known, np.asarray(self._codes), points)
            E = np.where(there[:, None], E, soft_shares(F, 1.0))
        return E.astype(self.embedding_.dtype, copy=False)

    def _keep(
        self, found: Any, geometry: Geometry, spoken_of: Any, chosen: dict[str, Any],
        source: _given.Source, some: Any, points: Any, X: Any,
    ) -> None:  # fmt: skip
        """What was learned of some points, and where the others are."""
        self.__dict__.pop("_graph", None)
        self.__dict__.update(chosen)
        self._store(found, geometry, X)
        if len(self.embedding_) < points.shape[0]:  # the others are placed as new points are
            self._scores = None  # of the others are not known
            self.embedding_ = self._placed(points, points[some])
            spoken_of = np.asarray(source.codes) >= 0
            self.__dict__.pop("_graph", None)
        self._points, self._codes = points, source.codes
        # By diffusion, corners are meant to be far out.
        self.label_mass_ = label_mass(self.embedding_, spoken_of, warned=self._kind != "diffusion")
        if source.codes is not None:
            self.classes_ = source.classes
            labels = np.where(spoken_of, source.codes, self._vote(self.embedding_, some))
            self.transduction_ = self.classes_[labels]

    def _store(self, found: Any, geometry: Geometry, X: Any) -> None:
        if not found.converged:
            warn(
                f"The eigenvectors have residuals up to {found.residuals.max():.1e}: raise tol if "
                "that is good enough, or try a larger lam.",
                ConvergenceWarning,
            )
        V, E = found.vectors, coordinates_of(geometry, found.vectors)
        signs = column_signs(E) if self.method_ == "eigenvectors" else 1.0  # are arbitrary
        dtype = X.dtype if sparse.issparse(X) else to_numpy(X[:0, :]).dtype
        self.embedding_ = (E * signs).astype(dtype, copy=False)
        self.eigenvalues_ = found.values
        self.n_matvecs_ = found.n_matvecs
        for name in ("space_", "components_", "transduction_", "classes_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if geometry.space is not None and geometry.values is not None:
            self.space_ = geometry.space
            self.components_ = (V * signs / np.sqrt(geometry.values)[:, None]).T
