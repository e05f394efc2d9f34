"""The theorem as code: a kernel, a space and any learner make a kernel learner.

:class:`Kernelized` is the theorem, :class:`KernelizedCV` chooses the kernel and the rank by
cross-validation. Both are metrics, and predict where what they hold predicts. A fit of
``Kernelized`` makes one value of what is told about its rows (``_supervision.py``), decides what
"auto" stands for (``_recipe.py``), fits the space, then the learner on what its ``fit`` takes
(``_arguments.py``), and keeps where training rows lie (``_places.py``). A search lists candidates
(``_candidates.py``) and compares them fold by fold (``_folds.py``).
"""

from kernelmetric.kernelized._kernelized import Kernelized
from kernelmetric.kernelized._recipe import Recipe
from kernelmetric.kernelized._search import KernelizedCV

__all__ = ["Kernelized", "KernelizedCV", "Recipe"]
