"""Sums over pairs of points, tile by tile.

A reduction is a *tile function*, a combination of what the tiles give, and what a tile costs. The
tile function takes all that it looks at as arguments and writes into nothing that it did not make;
``kernelmetric.compute._execute`` runs it, and puts results together in the order of the tiles::

    _distances.py   squared distances, each right by itself, and the median distance
    _neighbors.py   exact k nearest neighbours; the search is in _table.py
    _smallest.py   the k smallest entries of rows
    _softmax.py     softmax over other points
    _impostors.py   the LMNN hinge: _triplets.py its blocks, _listed.py by lists
    _gram_products.py  Frobenius products between Gram matrices, for kernel alignment
    _products.py    points times a map, a sparse matrix times a block of vectors
    _subspaces.py   distances between points that may move along directions of their own
    _sparse.py      the largest products of sparse rows
    _bits.py        bits that are packed: products, and the most similar rows
    _centres.py     centres of clusters, on a device
"""

from kernelmetric.compute._arrays import read_only
from kernelmetric.compute._execute import sum_entries
from kernelmetric.compute.reductions._bits import most_similar_bits, unpacked
from kernelmetric.compute.reductions._centres import centres_on_device
from kernelmetric.compute.reductions._distances import (
    exp_of_negative,
    l1_distances,
    median_squared_distance,
    overflow_error,
    pair_squares,
    sampled_squared_distances,
    squared_distances,
    weighted_quantiles,
)
from kernelmetric.compute.reductions._gram_products import GramProducts, gram_products, row_products
from kernelmetric.compute.reductions._impostors import laplacian_product, lmnn_hinge
from kernelmetric.compute.reductions._listed import lmnn_at_lengths, lmnn_step_on, mine_impostors
from kernelmetric.compute.reductions._neighbors import class_neighbors, nearest_neighbors
from kernelmetric.compute.reductions._products import (
    BlockProduct,
    map_points,
    out_of_range,
    product,
)
from kernelmetric.compute.reductions._smallest import k_smallest
from kernelmetric.compute.reductions._softmax import nca_loss, softmax_reduction
from kernelmetric.compute.reductions._sparse import most_alike
from kernelmetric.compute.reductions._subspaces import subspace_distances
from kernelmetric.compute.reductions._triplets import Triplets
