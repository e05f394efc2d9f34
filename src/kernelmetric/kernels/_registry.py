"""Every kernel that has a name: the API, the names and the contract tests are made of this list.

A new kernel is a class, and its entry here. Its name is that of the class in small letters.
"""

from kernelmetric.kernels._dot import Cosine, Jaccard, Linear, Polynomial
from kernelmetric.kernels._function import Precomputed
from kernelmetric.kernels._radial import RBF, Delta, Laplacian

KERNELS = (RBF, Laplacian, Polynomial, Linear, Cosine, Jaccard, Delta, Precomputed)
