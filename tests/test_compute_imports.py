"""Files of compute and inputs import each other only downwards; few know of threads and dtypes."""

import ast
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import kernelmetric
from kernelmetric import compute

SOURCES = Path(kernelmetric.__file__).parents[1]
ROOM, DOOR = "kernelmetric.compute", "kernelmetric.inputs"

# Where rooms above decide on threads, on the digits of floats, or look for rows on many machines.
# A use more is a decision that compute should make: give it a verb for that instead.
USES = {
    "one_thread": {
        "evaluation/_baselines.py": 2,
        "learners/_descent.py": 1,
        "learners/_idealized_choice.py": 1,
        "learners/_lsml_solvers.py": 1,
        "learners/_rfm.py": 1,
        "selection/_leave_one_out.py": 1,
        "selection/_ridge_solution.py": 2,
        "solvers/_pair_interior.py": 1,
        "solvers/_pair_solve.py": 1,
        "spaces/_pair_kpca.py": 1,
    },
    "one_blas_thread": {
        "solvers/_pair_solve.py": 1,
    },
    "tiles_at_once": {
        "kernelized/_time.py": 1,
        "learners/_base.py": 1,
        "learners/_lmnn.py": 1,
        "solvers/_pair_interior.py": 1,
    },
    "float32": {
        "kernels/_points.py": 2,
        "learners/_descent.py": 1,
        "learners/_nca.py": 1,
        "linkage/_comparisons.py": 5,
        "linkage/_labelling.py": 1,
        "linkage/_ngrams.py": 2,
        "selection/_relevance.py": 1,
        "selection/_ridge_kpca.py": 1,
        "selection/_ridge_solution.py": 3,
        "shipping/_faiss.py": 2,
        "shipping/_onnx.py": 4,
        "shipping/_onnx_graph.py": 1,
        "shipping/_tree.py": 1,
        "solvers/_davidson.py": 5,
        "solvers/_pair_dual.py": 2,
        "solvers/_refined.py": 6,
        "solvers/_ridge_grid.py": 2,
        "spaces/_base.py": 1,
        "spaces/_centred_gram.py": 1,
        "transductive/_given.py": 1,
        "transductive/_tangent.py": 2,
    },
    "in_float64": {
        "learners/_descent.py": 1,
        "learners/_lmnn.py": 1,
        "learners/_nca.py": 2,
        "learners/_scatter.py": 4,
        "learners/_tuple_learner.py": 1,
        "selection/_path.py": 2,
        "selection/_ridge_kpca.py": 2,
        "selection/_ridge_solution.py": 1,
        "solvers/_leading_eigenvectors.py": 1,
        "spaces/_centred_gram.py": 1,
        "spaces/_features.py": 1,
        "spaces/_gram.py": 2,
        "spaces/_kpca.py": 1,
        "spaces/_nystroem.py": 1,
    },
    "is_single": {
        "kernels/_function.py": 1,
        "learners/_descent.py": 1,
        "selection/_alignment.py": 1,
        "selection/_ridge_kpca.py": 1,
        "selection/_ridge_solution.py": 1,
        "solvers/_leading_eigenvectors.py": 1,
        "spaces/_features.py": 1,
        "spaces/_gram.py": 1,
        "spaces/_kpca.py": 3,
        "spaces/_nystroem.py": 2,
        "transductive/_given.py": 1,
    },
    "is_streamed": {
        "kernelized/_kernelized.py": 2,
        "kernelized/_places.py": 1,
        "kernels/_mapped.py": 1,
        "learners/_base.py": 1,
        "learners/_nca.py": 1,
        "learners/_scatter.py": 1,
        "selection/_alignment.py": 2,
        "selection/_leave_one_out.py": 1,
        "spaces/_base.py": 1,
        "spaces/_nystroem.py": 1,
    },
}


def modules():
    """The files of both rooms by the names of their modules."""
    found = {}
    for room in (ROOM, DOOR):
        for path in SOURCES.joinpath(*room.split(".")).rglob("*.py"):
            parts = path.relative_to(SOURCES).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path, known):
    """The modules of the rooms that a file imports, at its top or inside of functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield from (name for name in (inner,) if name in known)
                if inner not in known and node.module in known:
                    yield node.module
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            rooms = {ROOM, DOOR}
            yield from (name for name in (node.value,) if name in known and name not in rooms)


def test_no_file_imports_one_that_imports_it():
    known = modules()
    assert len(known) > 30
    graph = {name: set(imported(path, known)) - {name} for name, path in known.items()}
    assert f"{ROOM}._arrays" in graph[f"{ROOM}._execute"]
    assert f"{ROOM}.backends.dask" in graph[f"{DOOR}._methods"]  # inside of a function
    TopologicalSorter(graph).prepare()  # raises CycleError where there is one
    assert not any(ROOM in others for name, others in graph.items() if name.startswith(ROOM))
    assert not any(DOOR in others for others in graph.values())


def test_the_face_of_compute_is_small():
    assert len(compute.__all__) == len(set(compute.__all__)) <= 25
    assert all(hasattr(compute, name) for name in compute.__all__)


@cache
def names_above():
    """The names that each file above compute and inputs uses, and how often."""
    found = {}
    home = Path(kernelmetric.__file__).parent
    for path in home.rglob("*.py"):
        place = path.relative_to(home).as_posix()
        if not place.startswith(("compute/", "inputs/")):
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            found[place] = Counter(
                getattr(node, "id", getattr(node, "attr", None)) for node in nodes
            )
    return found


def uses(name):
    """How often the files above compute and inputs use a name."""
    return +Counter({place: names[name] for place, names in names_above().items()})


@pytest.mark.parametrize("name", USES)
def test_no_room_above_decides_more_on_threads_and_dtypes(name):
    found = uses(name)
    assert found, f"nobody uses {name} any more: take it out of the list"
    assert {place: n for place, n in found.items() if n > USES[name].get(place, 0)} == {}
