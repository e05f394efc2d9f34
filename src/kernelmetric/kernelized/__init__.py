"""The theorem as code: a kernel, a space and any learner make a kernel learner.

:class:`Kernelized` is the theorem, :class:`KernelizedCV` chooses the kernel and the rank by
cross-validation. Both are metrics, and predict where what they hold predicts::

    _kernelized.py   Kernelized: kernel, then space, then learner
    _supervision.py  what a fit is told about its rows, one value made at the door
    _recipe.py       Recipe: what "auto" stands for, decided in one place
    _places.py       rows of the training table as if left out, and how many neighbours vote there
    _search.py       KernelizedCV: many kernels and ranks, the work they share done once
    _folds.py        what the search does in one fold
    _candidates.py   lists of kernels and ranks, from what a user writes
    _results.py      the table of a search, as GridSearchCV writes it
    _folded.py       the maps of space and learner as one matrix, points checked once
    _parts.py        what may stand inside, and what is refused in a sentence
    _memory.py       what a whole fit takes
    _new_points.py   points through space and learner, block by block
    _delegation.py   predict and its kin, from the estimator inside
    _arguments.py    what the learner's fit gets besides coordinates and labels
    _tuples.py       tuples of points, for learners from pairs or triplets that others wrote
"""

from kernelmetric.kernelized._kernelized import Kernelized
from kernelmetric.kernelized._recipe import Recipe
from kernelmetric.kernelized._search import KernelizedCV

__all__ = ["Kernelized", "KernelizedCV", "Recipe"]
