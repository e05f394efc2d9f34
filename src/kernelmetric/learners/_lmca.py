"""Large margin component analysis."""

from kernelmetric.learners._lmnn import LargeMargin


class LMCA(LargeMargin):
    """Large margin component analysis: the LMNN objective over maps of low rank.

    Not convex, but for a small rank the result is better than LMNN's metric truncated to it.

    Parameters
    ----------
    n_components : int, default=None
        Rank of the map; None keeps all dimensions, where the objective is LMNN's.
    n_neighbors : int, default=3
        Target neighbours of each point; points of smaller classes use those they have.
    c : float, default=1.0
        Weight of the margin violations.
    init : {'auto', 'identity', 'pca', 'lda', 'random'} or array of shape (r, d), default='auto'
        The first map; all but an array are scaled to the length with the smallest objective.
    reg : float, default=0.0
        Weight of the squared Frobenius norm of L.
    max_iter : int, default=500
        Maximum number of L-BFGS iterations.
    tol : float, default=1e-3
        Tolerance on the objective, relative to it or to the number of target pairs.
    warm_start : bool, default=False
        Start at the ``components_`` of the last fit, of the same shape.
    class_weight : dict, 'balanced' or None, default=None
        What the points of each class count; 'balanced' lets all classes count alike.
    random_state : int, RandomState or None, default=None
        For ``init='random'``.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L.
    loss_ : float
        The objective, with the plain hinge, at L.
    loss_curve_ : list of float
        The objective, with the smoothed hinge, after every iteration.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether ``tol`` was reached.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    LMNN : The same objective at full rank, where it is convex.

    References
    ----------
    .. [1] Torresani and Lee, "Large margin component analysis", NIPS 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernelmetric import LMCA
    >>> X, y = load_digits(return_X_y=True)
    >>> LMCA(n_components=3, tol=1e-2).fit(X[:200], y[:200]).transform(X).shape
    (1797, 3)
    """
