"""The way back from the feature space: points whose coordinates are near given ones."""

from typing import Any

from sklearn import config_context
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute import is_sparse, like, to_numpy
from kernelmetric.inputs import check_coordinates, is_objects

_NEAREST = 10  # kept points of which a pre-image is the mean


class PreImages:
    """Approximate inverses, by the points that a space keeps."""

    learner_: Any

    def inverse_transform(self, Z: Any) -> Any:
        """Points whose coordinates are near given ones, approximated.

        Few coordinates are those of any point exactly. So a result is the mean of the ten points,
        of those that the space keeps, that are nearest to the coordinates, weighed by the inverse
        distance. At a kept point it is that point.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Coordinates, as :meth:`transform` gives them.

        Returns
        -------
        array of shape (n_samples, n_features)
            Points within the range of the training points.
        """
        check_is_fitted(self)
        space: Any = getattr(self, "space_", self)
        points, pairwise = getattr(space, "anchors_", None), space.kernel_.pairwise
        if points is None or pairwise or hasattr(self, "schema_") or is_objects(points):
            raise ValueError(
                f"Got {type(self).__name__} whose space keeps no points of numbers, but expected "
                "one that does, of an array of features: try KPCA or Nystroem, and no table of "
                "categories, objects or precomputed kernel."
            )
        with config_context(transform_output="default"):
            E = space.transform(points)
            E = self.learner_.transform(E) if space is not self else E
        points = points.toarray() if is_sparse(points) else to_numpy(points)
        known = to_numpy(E)
        Z = check_coordinates(Z, known.shape[1])
        near = KNeighborsRegressor(min(_NEAREST, len(known)), weights="distance")
        return like(near.fit(known, points).predict(Z), E)
