"""The command line: ``kernelmetric fit table.csv --label kind --report page.html``, and more.

Thin: what is computed lives in the rooms below, what is shown in ``report``. One file per
command, each with a function ``command()`` that makes it::

    _application.py   the group of commands, and main, which names a missing extra in a sentence
    _demo.py _fit.py _transform.py _evaluate.py _neighbors.py _explain.py _link.py _label.py
    _check.py _datasets.py   the commands
    _options.py       options that several commands share, and the metric they describe
    _talk.py          how commands speak: sentences, progress, JSON; how they fail
    _outputs.py       files to write: whether they can be, and are not files to read
    _study.py         a table with its decisions, and the trials of a metric on it
    _records.py       records of one table or two, as link and label take them
    _cluster.py       who works on parts of a table: processes of this machine, or a Dask cluster
    _parts_study.py   a table in many files: a sample is studied, all rows are learned from
    _uneven.py        what there is to say where some classes are much larger than others
    _models.py        models in files

click and rich are an extra, imported when a command is made or run. Exit codes: 0 done, 1 refused
by data or files, 2 a wrong command line or a missing extra, 130 interrupted; of ``check``: 0 yes,
1 no, 2 an error.
"""

from kernelmetric.cli._application import build_application, main

__all__ = ["build_application", "main"]
