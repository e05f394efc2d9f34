"""The command line: ``kernelmetric fit table.csv --label kind --report page.html``, and more.

Thin: what is computed lives in the rooms below, what is shown in ``report``. The command ``fit``
is the function ``fit`` of the file ``_fit.py``, and so on: a new command is such a file, and its
name in the list of ``_application.py``. Commands share::

    _options.py       options, and the metric they describe
    _talk.py          how commands speak: sentences, progress, JSON; how they fail
    _files.py         models to read, and files to write: whether they can be
    _study.py         a table with its decisions, or a sample of it where it is large
    _uneven.py        what trials have shown, also where classes are uneven
    _records.py       records to link, and answers about them

click and rich are an extra: only ``main`` may be imported without them. Exit codes: 0 done, 1
refused by data or files, 2 a wrong command line or a missing extra, 130 interrupted; of ``check``:
0 yes, 1 no, 2 an error.
"""

from kernelmetric.cli._application import build_application, main

__all__ = ["build_application", "main"]
