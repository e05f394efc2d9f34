"""A kernel of graphs with labelled nodes."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from kernelmetric.inputs._parameters import Numbers
from kernelmetric.kernels._counts import CountKernel, mixed, text_codes


class WeisfeilerLehman(CountKernel):
    r"""What neighbourhoods two graphs share: trees of labels around their nodes, up to a depth.

    .. math:: k(x, y) = \frac{\sum_t c_t(x)\, c_t(y)}{\|c(x)\|\, \|c(y)\|}

    where :math:`c_t(x)` is how many nodes of x have the neighbourhood t, of depth 0 to h: the
    Weisfeiler-Lehman subtree kernel [1]_. O(h e) time for a graph of e edges, once.

    A graph is a pair (edges, labels): a list of pairs of nodes, and the label of each node, in a
    list (nodes are then numbers from 0 on) or a dict. A graph of networkx is understood too; its
    labels are the nodes' attribute ``label``. Other kernels of graphs, such as those of grakel,
    can be had by ``FunctionKernel(function, objects=True)``.

    Parameters
    ----------
    depth : int, default=3
        The depth h.
    similarity : {"cosine", "minmax", "tanimoto"}, default="cosine"
        The formula above; or what two graphs share as a part of what either has.

    References
    ----------
    .. [1] Shervashidze et al., "Weisfeiler-Lehman graph kernels", Journal of Machine Learning
       Research 12 (2011).

    Examples
    --------
    >>> from kernelmetric.kernels import WeisfeilerLehman
    >>> path, ring = [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]
    >>> graphs = [(path, ["C", "C", "O"]), (ring, ["C", "C", "O"]), (path, ["N", "N", "N"])]
    >>> WeisfeilerLehman(depth=1)(graphs).round(2)
    array([[1.  , 0.78, 0.  ],
           [0.78, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    expects: ClassVar[str] = "graphs, pairs of edges and labels"

    def __init__(self, depth: int = 3, *, similarity: str = "cosine"):
        self.depth = depth
        self.similarity = similarity

    def read(self, item: Any) -> tuple[np.ndarray, list[str]]:
        """Edges as an array of numbers of nodes, and labels as text."""
        if hasattr(item, "edges") and hasattr(item, "nodes"):
            item = [edge[:2] for edge in item.edges], dict(item.nodes(data="label"))
        edges, labels = item
        if isinstance(labels, dict):
            places = {node: i for i, node in enumerate(labels)}
            edges, labels = [(places[a], places[b]) for a, b in edges], list(labels.values())
        ends = np.array(edges) if len(edges) else np.empty((0, 2), np.int64)
        if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
            raise ValueError("its edges are no pairs of numbers of nodes")
        ends = np.unique(np.sort(ends.astype(np.int64), axis=1), axis=0)  # an edge counts once
        if ends.size and not 0 <= ends.min() <= ends.max() < len(labels):
            raise ValueError(f"it has edges of nodes that are none of its {len(labels)}")
        return ends, [str(label) for label in labels]

    def parts(self, item: Any) -> Iterator[tuple[str, Any]]:
        """Nodes, the label of each of them taken away."""
        edges, labels = item
        for i, label in enumerate(labels):
            yield f"{label} at {i}", (edges, [*labels[:i], "", *labels[i + 1 :]])

    def count(self, items: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """The neighbourhoods of all nodes of graphs: the row and the code of each."""
        Numbers(Integral, low=0).check(self, "depth")
        sizes = np.array([len(labels) for _, labels in items], dtype=np.intp)
        rows, starts = np.repeat(np.arange(len(items)), sizes), np.cumsum(sizes) - sizes
        ends = [edges + start for (edges, _), start in zip(items, starts, strict=True)]
        a, b = np.concatenate([np.empty((0, 2), np.int64), *ends]).T
        here, there = np.append(a, b), np.append(b, a)
        codes = text_codes([label for _, labels in items for label in labels])
        found = [codes]
        for _ in range(int(self.depth)):
            around = np.zeros(len(codes), dtype=np.uint64)
            with np.errstate(over="ignore"):  # a sum, as neighbours have no order
                np.add.at(around, here, mixed(codes[there], np.uint64(1)))
            codes = mixed(codes, around)
            found.append(codes)
        return np.tile(rows, len(found)), np.concatenate(found)
