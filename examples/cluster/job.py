"""Learn a metric on a cluster: ``python job.py tcp://host:8786``."""

import sys

import dask.array as da
import numpy as np
from dask.distributed import Client
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import NCA


def draw(n_rows, seed):
    """Three classes in two features, and eight features of noise; the last column is the class."""
    rng = np.random.RandomState(seed)
    classes = rng.randint(3, size=n_rows)
    centres = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    signal = centres[classes] + 0.7 * rng.standard_normal((n_rows, 2))
    return np.column_stack([signal, 3.0 * rng.standard_normal((n_rows, 8)), classes])


def main():
    """Connect, learn, transform, score."""
    with Client(sys.argv[1], timeout="120s") as client:
        client.wait_for_workers(2, timeout=120)
        # Every chunk is drawn by the worker that gets it. From files it would be
        # dask.dataframe.read_parquet(...): this program never holds the points.
        table = da.map_blocks(
            lambda block: draw(500, int(block[0])),
            da.arange(8, chunks=1),
            chunks=(500, 11),
            new_axis=1,
            dtype=float,
        )
        X, y = table[:, :10], table[:, 10].astype(int)

        metric = NCA(2, tol=1e-2).fit(X, y)  # runs on the workers
        Z = metric.transform(X)  # waits until somebody asks for it
        train, test = slice(0, 2000), slice(2000, 4000)

        for name, points in (("Euclidean", X), ("learned", Z)):
            points, labels = da.compute(points, y)
            knn = KNeighborsClassifier(5).fit(points[train], labels[train])
            print(f"{name}: {100 * knn.score(points[test], labels[test]):.1f} % of 2,000 points")
        print(f"{len(client.scheduler_info()['workers'])} workers, {metric.n_iter_} iterations")


if __name__ == "__main__":
    main()
