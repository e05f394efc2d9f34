"""Sums over pairs of points, tile by tile.

A reduction is a *tile function*, a combination of what the tiles give, and what a tile costs. The
tile function stands at the top level of its file, takes all that it looks at as arguments, and
writes into nothing that it did not make; ``kernelmetric.compute._execute`` runs it and puts the
results together in the order of the tiles, whoever finished first::

    _distances.py   squared distances, each right by itself, and the median distance
    _neighbors.py   exact k nearest neighbours, also within and between classes
    _table.py       the search, which knows what rounding may have done
    _pruned.py      the same, most points ruled out in few coordinates
    _selection.py   the k smallest entries of rows
    _softmax.py     a softmax over all other points: NCA's loss, and any loss row by row
    _symmetric.py   half of it, which is all of it
    _truncated.py   the same over near points alone, with a certificate
    _triplets.py    what the LMNN hinge looks at, by blocks
    _impostors.py   that hinge, over all impostors
    _listed.py      the same, over those of a list
    _mining.py      which ones to list, and the objective alone
    _gram_products.py  Frobenius products between Gram matrices, for kernel alignment
    _products.py    points times a map, a sparse matrix times a block of vectors
    _subspaces.py   distances between points that may move along directions of their own
"""
