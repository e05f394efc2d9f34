"""Shipping: functions on a fitted metric that take it out of the process.

::

    _save.py       save, load: a file without pickle, the same output to the last bit
    _compress.py   compress: fewer kernel evaluations per point, with a stated loss
    _onnx.py       to_onnx: a model for other languages and devices
    _faiss.py      to_faiss: an index of nearest neighbours

Under save and load lie three layers: ``_tree.py`` (objects as JSON), ``_allowed.py`` (which
classes) and ``_container.py`` (the file). ``_maps.py`` writes a metric as features times a matrix,
which is all that to_onnx and compress need to know; ``_files.py`` writes files as a whole or not at
all, ``_extras.py`` imports what is optional.
"""

from kernelmetric.shipping._compress import compress
from kernelmetric.shipping._container import SavedFileError
from kernelmetric.shipping._extras import MissingExtraError, require
from kernelmetric.shipping._faiss import to_faiss
from kernelmetric.shipping._files import replace_file, write_atomically
from kernelmetric.shipping._maps import MetricMap, metric_map
from kernelmetric.shipping._onnx import to_onnx
from kernelmetric.shipping._save import load, save

__all__ = [
    "MetricMap",
    "MissingExtraError",
    "SavedFileError",
    "compress",
    "load",
    "metric_map",
    "replace_file",
    "require",
    "save",
    "to_faiss",
    "to_onnx",
    "write_atomically",
]
