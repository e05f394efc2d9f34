"""Sums over pairs of points, tile by tile.

A reduction is a *tile function*, a combination of what the tiles give, and what a tile costs. The
tile function takes all that it looks at as arguments and writes into nothing that it did not make;
``kernelmetric.compute._execute`` runs it, and puts results together in the order of the tiles::

    _distances.py   squared distances, each right by itself, and the median distance
    _neighbors.py   exact k nearest neighbours: _table.py the search, _pruned.py in few coordinates
    _selection.py   the k smallest entries of rows
    _softmax.py     softmax over other points: _symmetric.py half of it, _truncated.py near ones
    _impostors.py   the LMNN hinge: _triplets.py its blocks, _listed.py and _mining.py by lists
    _gram_products.py  Frobenius products between Gram matrices, for kernel alignment
    _products.py    points times a map, a sparse matrix times a block of vectors
    _subspaces.py   distances between points that may move along directions of their own
    _centres.py     centres of clusters, on a device
"""
