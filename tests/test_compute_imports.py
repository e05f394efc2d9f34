"""The files of compute import each other only downwards, inside of functions too."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import kernelmetric

SOURCES = Path(kernelmetric.__file__).parents[1]
ROOM = "kernelmetric.compute"


def modules():
    """The files of the room by the names of their modules."""
    found = {}
    for path in SOURCES.joinpath(*ROOM.split(".")).rglob("*.py"):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path, known):
    """The modules of the room that a file imports, at its top or inside of functions."""
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
            yield from (name for name in (node.value,) if name in known and name != ROOM)


def test_no_file_imports_one_that_imports_it():
    known = modules()
    assert len(known) > 30
    graph = {name: set(imported(path, known)) - {name} for name, path in known.items()}
    assert f"{ROOM}._arrays" in graph[f"{ROOM}._execute"]
    assert f"{ROOM}.backends.dask" in graph[f"{ROOM}._methods"]  # inside of a function
    TopologicalSorter(graph).prepare()  # raises CycleError where there is one
    assert not any(ROOM in others for others in graph.values())
