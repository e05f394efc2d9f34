"""Shipping: functions on a fitted metric that take it out of the process.

::

    _save.py       save, load: a file without pickle, the same numbers bit by bit
    _compress.py   compress: fewer kernel evaluations per point, with a stated loss
    _onnx.py       to_onnx: a model for other languages and devices
    _faiss.py      to_faiss: an index of nearest neighbours

Under save and load lie::

    _tree.py           objects as JSON
    _allowed.py        which classes
    _checks.py         whether attributes are such as a fit leaves
    _fitted.py         what a fit leaves, by class
    _agreement.py      what agrees in it
    _attributes.py     kinds of values, sides, a sentence
    _container.py      the file

``_maps.py`` writes a metric as features times a matrix; ``_onnx_graph.py`` holds the nodes of a
model. ``_files.py`` writes files as a whole or not at all.
"""

from kernelmetric.inputs._extras import MissingExtraError, require
from kernelmetric.shipping._compress import compress
from kernelmetric.shipping._container import SavedFileError
from kernelmetric.shipping._faiss import to_faiss
from kernelmetric.shipping._files import replace_file, write_atomically
from kernelmetric.shipping._onnx import to_onnx
from kernelmetric.shipping._save import load, save

__all__ = [
    "MissingExtraError",
    "SavedFileError",
    "compress",
    "load",
    "save",
    "to_faiss",
    "to_onnx",
    "write_atomically",
]
