"""Every kernel that has a name: the API, the names and the contract tests are made of these lists.

A new kernel is a class, and its entry here. Its name is that of the class in small letters.
"""

from kernelmetric.kernels._convolutions import Convolutions
from kernelmetric.kernels._distance import FromDistance
from kernelmetric.kernels._dot import Cosine, Linear, Polynomial
from kernelmetric.kernels._function import Precomputed
from kernelmetric.kernels._graphs import WeisfeilerLehman
from kernelmetric.kernels._molecules import Molecules
from kernelmetric.kernels._radial import RBF, Delta, Laplacian
from kernelmetric.kernels._series import GlobalAlignment
from kernelmetric.kernels._sets import MeanEmbedding
from kernelmetric.kernels._strings import NGrams
from kernelmetric.kernels._tanimoto import MinMax, Tanimoto

KERNELS = (RBF, Laplacian, Polynomial, Linear, Cosine, Tanimoto, MinMax, Delta, Precomputed)
OBJECT_KERNELS = (
    *(NGrams, Molecules, GlobalAlignment, Convolutions),
    *(MeanEmbedding, WeisfeilerLehman, FromDistance),
)
