"""Principal components of an explicit feature map, streamed over blocks of rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kernelmetric import compute
from kernelmetric.inputs import check_points, labels_and_weights, unchanged_on_failure
from kernelmetric.kernels import as_kernel
from kernelmetric.solvers import column_signs, right_singular
from kernelmetric.spaces import _base

_SHIFT_ROWS = 256  # whose mean the features are moved by, so that squares lose no digits


@dataclass(eq=False, repr=False, kw_only=True)
class FeatureMapSpace(_base.Space):
    """Base class of spaces with an explicit map: z(x) = Vᵀ(f(x) - μ), f(x) = W features(x).

    One pass over the training points gathers the mean μ and the scatter of f, whose eigenvectors
    are V.
    """

    n_components: int | float | None = None
    kernel: Any = None
    random_state: Any = None

    def _peak_bytes(self, n_samples: int, n_features: int) -> float:
        m = self._n_map_features(n_samples)
        in_full = self._bytes_in_full(n_samples, n_features)
        if n_samples <= m:  # no blocks: all features at once
            return in_full
        block = min(n_samples, max(256, _base.BLOCK_BYTES // (8 * m)))
        return in_full + compute.within_budget(8.0 * block * (3 * m + n_features))

    def _bytes_in_full(self, n_samples: int, n_features: int) -> float:
        # the scatter of the features, or all of them, with the workspace of LAPACK; the map
        m = self._n_map_features(n_samples)
        return 8.0 * m * (5 * min(n_samples, m) + n_features)

    def _n_map_features(self, n_samples: int) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define _n_map_features.")

    def _streams(self) -> str | None:
        return None if as_kernel(self.kernel).pairwise else "always"

    def _check_parameters(self) -> None:
        _base.check_n_components(self.n_components)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from further rows: the axes become those of all rows so far.

        The first call chooses kernel and features as ``fit`` does; later calls keep them, and give
        what one fit on all rows would give with them. Where ``explained_variance_ratio_`` falls,
        new rows differ from the first ones: then it is time to begin anew.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that were not seen before.
        y : array-like of shape (n_samples,), default=None
            In the first call passed to the kernel's ``bind``; ignored later.

        Returns
        -------
        self
            The space.
        """
        first = not hasattr(self, "projection_")
        if as_kernel(self.kernel).pairwise:
            raise ValueError(
                "Got partial_fit with a precomputed kernel, but expected points: kernel values of "
                "further rows with each other are not known."
            )
        if not first and not hasattr(self, "moments_"):
            raise ValueError(
                f"Got {type(self).__name__} without sums of its rows, as fit and a metric keep it, "
                "but expected one whose rows all came by partial_fit: begin with a new one. A "
                "metric's map would not suit other axes: fit its learner to the coordinates."
            )
        with unchanged_on_failure(self):
            if first:
                X = self._begin(self._checked(X), y)
                P, m, cut_off = self._feature_map(X, y)
                seen: dict[str, Any] = {"count": 0.0, "norms": 0.0, "cut_off": cut_off}
            else:
                self._check_parameters()
                sparse = self.kernel_.accepts_sparse
                X = check_points(self, X, reset=False, accept_sparse=sparse)
                seen = self.moments_
                m, P = seen["projection"].shape[0], compute.in_library_of(seen["projection"], X)
            self._add(X, P, m, seen)
        return self

    def _add(self, X: Any, P: Any | None, m: int, seen: dict[str, Any]) -> None:
        """Turn the axes to those of the rows seen and of X, and keep the moments of features."""
        mean, scatter = self._moments(X, P, m, None)
        scatter, n = compute.to_numpy(scatter), float(X.shape[0])
        if seen["count"]:
            before, count = seen["mean"], seen["count"]
            between = (mean - before) * np.sqrt(count * n / (count + n))
            scatter = scatter + np.diag(seen["scatter"]) + np.outer(between, between)
            mean, n = before + (n / (count + n)) * (mean - before), count + n
        norms = seen["norms"] + self._squared_norms(X, None)
        values, V = compute.backend_of(scatter).symmetric_eigenpairs(scatter)
        axes = mean, values[::-1], np.ascontiguousarray(V[:, ::-1])
        P = None if P is None else compute.to_numpy(P)
        self._keep(X, axes, P, (n, n, norms), seen["cut_off"])
        self.moments_ = {
            "projection": axes[2] if P is None else P @ axes[2],
            "mean": mean @ axes[2],
            "scatter": np.array(axes[1]),
            "count": n,
            "norms": norms,
            "cut_off": seen["cut_off"],
        }

    def _feature_map(self, X: Any, y: Any) -> tuple[Any | None, int, float]:
        """Choose the features; the map W to f or None, their number, and the relative cut-off."""
        raise NotImplementedError(f"{type(self).__name__} must define _feature_map.")

    def _learn(self, X: Any, y: Any) -> Callable[[], Any]:
        """Set ``projection_`` and ``offset_`` from the streamed moments of f on X."""
        weights = labels_and_weights(y)[1]
        counts = None if weights is None else weights.counts
        W, m, cut_off = self._feature_map(X, y)
        axes = self._principal_axes(X, W, m, counts)
        n = X.shape[0]
        total = float(n) if weights is None else weights.total
        self._keep(X, axes, W, (n, total, self._squared_norms(X, counts)), cut_off)
        self.__dict__.pop("moments_", None)  # those of rows that came before
        return lambda: self._coordinates(X)

    def _keep(
        self,
        X: Any,
        axes: tuple[np.ndarray, np.ndarray, Any],
        W: Any | None,
        sums: tuple[float, float, float],
        cut_off: float,
    ) -> None:
        """Keep the leading axes, of so many rows that count so much, and their squared norms."""
        (mean, values, V), (rows, n, norms) = axes, sums
        # ‖mean‖² in the span of f bounds that of the feature space from below, so this total is
        # an upper bound, and the fraction of variance kept a lower one.
        total = max(norms - n * float(mean @ mean), float(values.clip(0).sum()))
        eps = float(compute.namespace(X).finfo(X.dtype).eps)
        # As in KPCA: what the round-off of centring leaves of identical points is no direction.
        floor = max(cut_off * values[0], rows * np.finfo(np.float64).eps * norms, 0.0)
        kept = _base.n_kept(values, max(floor, eps * norms / rows), self.n_components, total)
        if kept == 0:
            _base.refuse_rank_zero(X.shape[0], self.kernel_)
        V = V[:, :kept]
        host_V = compute.to_numpy(V) * column_signs(compute.to_numpy(V))
        V = compute.in_library_of(host_V, V)
        self.eigenvalues_ = np.array(values[:kept])
        self.rank_ = kept
        self.explained_variance_ratio_ = float(self.eigenvalues_.sum() / total)
        self.projection_ = _finite_like(V if W is None else W @ V, X)
        self.offset_ = _finite_like((mean @ host_V)[None, :], X)

    def _principal_axes(
        self, X: Any, W: Any | None, m: int, counts: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, Any]:
        """Mean of f, eigenvalues of its scatter in descending order, eigenvectors in columns."""
        if X.shape[0] > m:
            mean, scatter = self._moments(X, W, m, counts)
            values, V = compute.backend_of(scatter).symmetric_eigenpairs(scatter)
            return mean, values[::-1], compute.namespace(V).flip(V, axis=1)
        # Fewer points than features: all features together are smaller than their scatter.
        F = compute.to_numpy(self._features(X)).astype(np.float64)
        F = F if W is None else F @ compute.to_numpy(W)
        mean = np.average(F, axis=0, weights=counts)
        F = F - mean
        singular, Vt = right_singular(F if counts is None else np.sqrt(counts)[:, None] * F)
        return mean, singular**2, compute.in_library_of(Vt.T, X)

    def _moments(
        self, X: Any, W: Any | None, m: int, counts: np.ndarray | None
    ) -> tuple[np.ndarray, Any]:
        """Mean and scatter of f, accumulated in float64 around the mean of the first rows."""
        # Where all digits cost no time, one product with them replaces two
        of_X = compute.like(np.zeros(1), X)
        cheap = W is not None and compute.precise(of_X, if_cheap=True).dtype != X.dtype
        last = W if cheap else None
        W = None if W is None or cheap else _finite_like(W, X)

        def mapped(rows: slice) -> Any:
            F = self._features(X[rows, :])
            F = F if W is None else _base.times(F, W)
            return compute.precise(F) if cheap else F

        first = mapped(slice(0, min(_SHIFT_ROWS, X.shape[0])))
        shift = compute.namespace(first).mean(first, axis=0, keepdims=True)

        def moments(rows: slice) -> tuple[Any, Any]:
            F = mapped(rows) - shift
            xp = compute.namespace(F)
            G = F if counts is None else compute.like(counts[rows], F)[:, None] * F
            scatter = compute.backend_of(F).column_products(F) if counts is None else F.T @ G
            scatter = xp.astype(scatter, xp.float64, copy=False)
            return xp.sum(xp.astype(G, xp.float64, copy=False), axis=0), scatter

        size = _base.block_size(X, 2 * m if cheap else m)
        total, scatter = compute.sum_rows(moments, X.shape[0], **size)
        if last is not None:
            total, scatter, shift = total @ last, last.T @ scatter @ last, shift @ last
        drift = total / (X.shape[0] if counts is None else float(np.sum(counts)))
        mean = compute.to_numpy(shift)[0].astype(np.float64) + compute.to_numpy(drift)
        return mean, scatter - total[:, None] * drift[None, :]

    def _squared_norms(self, X: Any, counts: np.ndarray | None) -> float:
        def norms(rows: slice) -> float:
            squares = compute.to_numpy(self.kernel_.diag(X[rows, :]))
            squares = squares if counts is None else counts[rows] * squares
            return float(np.sum(squares, dtype=np.float64))

        if self.kernel_.pairwise:
            return norms(slice(None))  # the diagonal is of all rows together
        return compute.sum_rows(norms, X.shape[0], 8 * (3 * X.shape[1] + 64))


def _finite_like(values: np.ndarray, X: Any) -> Any:
    """Values in the library and dtype of X, refused where float32 has no number for them."""
    with np.errstate(all="ignore"):
        return _base.as_finite(compute.like(values, X), X.dtype)
