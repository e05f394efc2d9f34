"""The papers' tables and figures, run anew: ``python -m reproduction 000-table1 --smoke``.

A part of the repository, not of the installed library. A table of a paper is a ``Table``: data
sets × methods × splits, a protocol in sentences, and the printed numbers in ``printed/*.csv``.
``run_table`` runs what is not finished yet, one cell at a time, and ``reproduced`` sets the cells
beside the paper's::

    tables.py          all tables, by name: those of the papers, and studies that the guide shows
    table.py           Table, Method, and how they are run
    cells.py           the file of finished cells, and the loop that resumes
    datasets.py        the papers' data sets by name, from a folder, scikit-learn or OpenML
    sources.py         these three, and the checksums of sets.toml
    problems.py        data sets: training points, scaling, splits
    kernelization.py   Tables 1-3 of 000 and 003: NCA, LMNN, DNE and their kernel versions
    transductive.py    Tables 1-2 of 001: few labels among many points; further methods
    idealized.py       Tables 2-4 of 004: metrics learned from pairs; every form of them
    beyond.py          a table that no paper has: all methods beside tuned classifiers
    learners.py        all learners, linear and kernelized, on a few sets
    aligned.py         the time to choose a kernel
    automatic.py       the automatic kernel beside tuned classifiers
    multimodal.py      alignment where classes have several clusters
    studies/           finished cells of those of the last five that the guide quotes
    classifiers.py     classifiers that several tables compare
    figures.py         what the papers' figures show
    papers.py          what the papers print
    comparison.py      verdicts on cells beside a paper's, wins and losses, paired tests
    ranking.py         many methods on many data sets: mean ranks, and a picture of them
    results.py         from cells to pages and pictures
    pages.py           the pages' text: Markdown, HTML, CSV
    pictures.py        the two tricks, Gram matrices side by side, our cells over the papers'
    command.py         ``python -m reproduction``
    documentation.py   ``python -m reproduction.documentation``: docs/reproduction.md
"""
