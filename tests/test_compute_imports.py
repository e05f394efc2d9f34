"""Files of compute and inputs import each other only downwards; they alone decide on floats."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import kernelmetric

SOURCES = Path(kernelmetric.__file__).parents[1]
ROOM, DOOR = "kernelmetric.compute", "kernelmetric.inputs"

# What only compute and inputs may name: how many threads, which floats, where rows lie. Rooms above
# say what they need: small_steps, repeatable, precise, rough, rounding_of, in_memory.
DECISIONS = {
    *("one_thread", "one_blas_thread", "tiles_at_once", "worth_threads", "in_threads"),
    *("n_threads", "num_threads", "threadpool_limits", "threadpool_info", "ThreadpoolController"),
    *("ThreadPoolExecutor", "set_num_threads", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
    *("float16", "float32", "bfloat16", ".half", ".single", "f2", "f4", "<f2", "<f4"),
    *("in_float32", "in_float64", "is_single", "wide_is_fast", "itemsize_of"),
    *("is_streamed", "streamed", "is_collection", "run_on_cluster"),
}
TAG = "scikit-learn's tag names the dtypes that come out as they went in"
EXCEPTIONS = {
    "kernelized/_parts.py": TAG,
    "learners/_base.py": TAG,
    "spaces/_base.py": TAG,
    "retrieval/_adapter.py": TAG,
    "solvers/_pair_newton.py": "a curvature need not be as sharp as the certificate that judges it",
    "transductive/_classifying.py": TAG,
    "prediction/_features.py": "scikit-learn's trees take nothing else",
    "shipping/_faiss.py": "faiss takes nothing else, and its rounding is looked at",
    "shipping/_onnx.py": "of an ONNX model users choose the types of its input and its arithmetic",
    "shipping/_onnx_graph.py": "the same, where its nodes are made",
    "shipping/_onnx_predict.py": "the same; and trees compare in single precision",
    "shipping/_tree.py": "the format of files names the types of numbers",
}


def modules():
    """The files of both rooms by the names of their modules."""
    found = {}
    for room in (ROOM, DOOR):
        for path in SOURCES.joinpath(*room.split(".")).rglob("*.py"):
            parts = path.relative_to(SOURCES).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def nodes(path):
    """All that a file says, read once."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported(path, known):
    """The modules of the rooms that a file imports, at its top or inside of functions."""
    for node in nodes(path):
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


def imported_from(path, room):
    """The names that a file imports from a room, or what lies inside of it."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(room):
            yield from ((node.module, alias.name) for alias in node.names)


def used_of(path, room):
    """The names that a file uses of the face of a room: imported from it, or qualified by it."""
    yield from (name for module, name in imported_from(path, room) if module == room)
    parent, _, name = room.rpartition(".")
    if (parent, name) in imported_from(path, parent):
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                yield from (node.attr for of in (node.value.id,) if of == name)


def test_the_face_of_compute_is_small():
    assert len(list(imported_from(SOURCES / "kernelmetric/compute/__init__.py", ROOM))) <= 25


@pytest.mark.parametrize("room", ["compute", "compute.reductions", "inputs", "solvers"])
def test_what_a_face_shows_is_used_by_other_rooms(room):
    home = f"kernelmetric.{room}"
    face = SOURCES / home.replace(".", "/") / "__init__.py"
    shown = {name for _, name in imported_from(face, "kernelmetric")} - {"moved"}
    paths = [path for path in SOURCES.rglob("*.py") if path != face]
    used = {name for path in paths for name in used_of(path, home)}
    assert shown and shown <= used


@cache
def decisions_above():
    """What each file above compute and inputs names, or writes as a text, of the decisions."""
    found = {}
    home = Path(kernelmetric.__file__).parent
    for path in home.rglob("*.py"):
        place = path.relative_to(home).as_posix()
        if not place.startswith(("compute/", "inputs/")):
            found[place] = {name for node in nodes(path) for name in named(node)} & DECISIONS
    return found


def named(node):
    """The names, or the text, of a node of source."""
    for field in ("id", "attr", "arg", "name", "asname", "value"):
        name = getattr(node, field, None)
        if isinstance(name, str):
            yield from (name, f".{name}") if field == "attr" else (name,)


@pytest.mark.parametrize(
    "source",
    [
        "from kernelmetric.compute._threads import one_thread as calm",
        "x = X.astype(np.float32)",
        "x = X.astype('float32')",
        "x = np.single(x)",
        "with threadpool_limits(1): pass",
        "fit(n_threads=2)",
        "def is_single(X): pass",
    ],
)
def test_a_decision_is_seen_however_it_is_written(source):
    assert {name for node in ast.walk(ast.parse(source)) for name in named(node)} & DECISIONS


def test_no_room_above_decides_on_threads_floats_or_streams():
    found = {place for place, names in decisions_above().items() if names}
    assert found <= EXCEPTIONS.keys()


@pytest.mark.parametrize("place", EXCEPTIONS)
def test_what_is_excepted_names_float32_alone(place):
    assert decisions_above()[place] == {"float32"}, EXCEPTIONS[place]
