"""Do the tests notice a fault? Faults are planted one at a time, and the tests that reach them run.

Cosmic Ray knows the kinds of faults (another operator, another number, a condition negated, a loop
that never runs). Three steps, each of which writes one file, so that any of them can be run again,
also on another machine::

    python benchmarks/mutation.py plan          # draw places in the code and one fault for each
    python benchmarks/mutation.py cover         # run all tests once: which test reaches which line
    python benchmarks/mutation.py run           # plant each fault in a copy and run those tests

A fault counts as noticed when a test fails that passes without it, or does not end. Each fault
meets the tests that reach its line, the quickest case of every test first, up to a limit of
seconds; a fault that only a slow test would notice therefore counts as missed. Places are drawn at
random, all alike. Left out are
annotations, which do not run, what is no longer Python, and what only sets the size of a block, the
number of threads or whether an array is copied: no result may depend on these, and other tests hold
us to that. ``SIZES`` finds such parts of a line, ``NAMES`` lists such constants file by file; the
rest of these lines stays in. What Triton compiles is never seen line by line: a fault there meets
all tests that reach its file.
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ["compute", "inputs", "solvers", "learners", "spaces", "shipping", "evaluation"]
FILES = ["tables/_files.py"]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "__pycache__", "mutation-output", ".*_cache", ".wheels", ".carry", "_build"
)
SIZES = re.compile(
    r".*\b(row_blocks|tile_rows|worth_threads|small_steps|tile_bytes|tiles_at_once)\(.*"
    r"|^_?[A-Z_]*(BYTES|TILE|CHUNK|PARTS|GROUP|ROUND|WORTH|GATHER_COST)[A-Z_]* = .*"
    r"|^_?FLOPS[A-Z_]* = .*|.*(_BYTES|_COST|_FLOPS)\w* [*/].*|.*\b(lru_cache|dataclass)\(.*"
    r"|\b(copy|overwrite_\w+|strict)=\w+|\bflops ?= ?.*|\bfits_budget\(.*bytes_per_row\)"
    r"|\"bytes_per_row\": .*|(?<=, )\d+ \* 8 \* [\w.]+(\[\d\])?"  # bytes of a row and of its work
    r"|(?<=, )8 \* \(3 \* .*\)$|(?<=size, )\d\.0 \* self\.count( \+ \d\.0)?"
)
NAMES = {
    "compute/_execute.py": ["_CACHED"],
    "compute/backends/cuda/_nearest.py": ["_PAIRS"],
    "compute/reductions/_gram_products.py": ["_OPERATIONS"],
    "compute/reductions/_impostors.py": ["_WHOLE_ROWS"],
    "compute/reductions/_neighbors.py": ["_LARGE"],
    "compute/reductions/_products.py": ["_LEAST_ROWS"],
    "compute/reductions/_smallest.py": ["_FEWEST_ROWS"],
    "compute/reductions/_subspaces.py": ["_PAIRS"],
    "compute/reductions/_triplets.py": ["_SHARED_ROWS"],
    "learners/_itml.py": ["_MOST_ROWS"],
    "learners/_lsml.py": ["_MOST_ROWS"],
    "solvers/_pair_dual.py": ["_BLOCK_ROWS"],
    "solvers/_symmetric.py": ["_LARGE", "_BLOCKS"],
}
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}


def main():
    arguments = parse()
    arguments.out.mkdir(parents=True, exist_ok=True)
    {"plan": plan, "cover": cover, "run": run}[arguments.step](arguments)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("step", choices=["plan", "cover", "run"])
    parser.add_argument("--out", type=Path, default=ROOT / "mutation-output", help="folder")
    parser.add_argument("--faults", type=int, default=400, help="places to draw (plan)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (plan)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--seconds", type=float, default=20.0, help="of tests for one fault (run)")
    parser.add_argument("--stop-after", type=float, default=float("inf"), help="seconds (run)")
    return parser.parse_args()


# --- plan -----------------------------------------------------------------------------------------


def plan(arguments):
    source = ROOT / "src" / "kernelmetric"
    files = [file for room in ROOMS for file in sorted((source / room).rglob("*.py"))]
    files += [source / name for name in FILES]
    places = [(file, place) for file in files for place in places_of(file).items()]
    rng = random.Random(arguments.seed)
    rng.shuffle(places)
    faults = []
    for file, (_, variants) in places[: arguments.faults]:
        operator, occurrence, line = rng.choice(variants)
        before = file.read_text(encoding="utf-8")
        after = mutate(before, operator, occurrence)
        if after is not None and after != before:
            faults.append(fault_of(file, line, operator, before, after))
    (arguments.out / "plan.json").write_text(json.dumps(faults, indent=1), encoding="utf-8")
    print(f"{len(faults)} faults at {len(places)} places of {len(files)} files")


def places_of(file):
    """Where a fault can be planted: position -> [(operator, occurrence, line), ...]."""
    import cosmic_ray.ast
    import cosmic_ray.plugins

    tree = cosmic_ray.ast.get_ast(file.read_text(encoding="utf-8"))
    nodes = list(cosmic_ray.ast.ast_nodes(tree))
    silent = annotation_positions(file) | size_positions(file)
    places = defaultdict(list)
    for name in cosmic_ray.plugins.operator_names():
        operator = cosmic_ray.plugins.get_operator(name)
        if operator.arguments() or "NoOp" in name:
            continue
        spans = (span for node in nodes for span in operator().mutation_positions(node))
        for occurrence, (start, stop) in enumerate(spans):
            if start not in silent:
                places[start, stop].append((name, occurrence, start[0]))
    return places


def size_positions(file):
    """All (line, column) of what only sets sizes: of blocks, of threads, of copies."""
    names = NAMES.get(file.relative_to(ROOT / "src" / "kernelmetric").as_posix(), [])
    missing = set(names)
    found = set()
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        name = re.match(r"\w*", line).group()
        if name in names:
            missing.discard(name)
            found |= {(number, column) for column in range(len(line))}
        for match in SIZES.finditer(line):
            found |= {(number, column) for column in range(*match.span())}
    if missing:
        raise SystemExit(f"NAMES lists {sorted(missing)}, which {file} no longer has.")
    return found


def annotation_positions(file):
    """All (line, column) inside annotations, which never run."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(part, ast.AST):
                found |= {
                    (line, column)
                    for line in range(part.lineno, part.end_lineno + 1)
                    for column in range(
                        part.col_offset if line == part.lineno else 0,
                        part.end_col_offset if line == part.end_lineno else 200,
                    )
                }
    return found


def mutate(code, operator, occurrence):
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    try:
        after = mutate_code(code, get_operator(operator)(), occurrence)
        ast.parse(after or "")  # a star before keywords is no product
        return after
    except (AttributeError, SyntaxError):  # nor can it replace an exception with a dot in its name
        return None


def fault_of(file, line, operator, before, after):
    lines = zip(before.splitlines(), after.splitlines(), strict=False)
    changed = next(((a, b) for a, b in lines if a != b), ("", ""))
    return {
        "file": str(file.relative_to(ROOT)),
        "line": line,
        "operator": operator.removeprefix("core/"),
        "was": changed[0].strip(),
        "is": changed[1].strip(),
        "code": after,
    }


# --- cover ----------------------------------------------------------------------------------------


def cover(arguments):
    """Run all tests once under coverage; write the tests of every line and how long each takes."""
    data = arguments.out / "coverage"
    settings = arguments.out / "coveragerc"
    said = f"[run]\ndata_file = {data}\ncore = ctrace\nbranch = true\n"
    settings.write_text(said, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(arguments.workers), "-p", "mutation"]
    command += [
        "--cov=kernelmetric",
        "--cov-context=test",
        "--cov-report=",
        f"--cov-config={settings}",
    ]
    paths = f"{Path(__file__).parent}{os.pathsep}{ROOT / 'src'}"
    environment = {
        **os.environ,
        **ONE_THREAD,
        "PYTHONPATH": os.pathsep.join([paths, os.environ.get("PYTHONPATH", "")]),
        "MUTATION_OUT": str(arguments.out),
    }
    subprocess.run(command, cwd=ROOT, env=environment, check=False)
    seconds = json.loads((arguments.out / "seconds.json").read_text(encoding="utf-8"))
    (arguments.out / "tests.json").write_text(json.dumps(tests_of(data, seconds)), encoding="utf-8")
    print(f"{len(seconds)} tests passed")


def tests_of(data, seconds):
    """The numbers of the tests that reach each line; of the whole file where it runs at import."""
    import coverage

    store = coverage.CoverageData(str(data))
    store.read()
    number = {name: i for i, name in enumerate(seconds)}
    lines, files = {}, {}
    for file in store.measured_files():
        reached = {}
        for line, contexts in store.contexts_by_lineno(file).items():
            names = {context.partition("|")[0] for context in contexts}
            reached[line] = sorted(number[name] for name in names & number.keys())
        everywhere = sorted(set().union(*reached.values()))
        name = "src" + file.rpartition("/src")[2]
        lines[name] = {line: found or everywhere for line, found in reached.items()}
        files[name] = everywhere
    return {
        "tests": list(seconds),
        "seconds": list(seconds.values()),
        "lines": lines,
        "files": files,
    }


class Timing:
    """A plugin of pytest: how long each test that passed took."""

    def __init__(self):
        self.seconds = {}

    def pytest_runtest_logreport(self, report):
        """After each test."""
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = report.duration

    def pytest_sessionfinish(self, session):
        """Write them, where the workers' reports come together."""
        if not hasattr(session.config, "workerinput"):
            target = Path(os.environ["MUTATION_OUT"]) / "seconds.json"
            target.write_text(json.dumps(self.seconds), encoding="utf-8")


def pytest_configure(config):
    config.pluginmanager.register(Timing())


# --- run ------------------------------------------------------------------------------------------


def run(arguments):
    started = time.monotonic()
    faults = json.loads((arguments.out / "plan.json").read_text(encoding="utf-8"))
    known = json.loads((arguments.out / "tests.json").read_text(encoding="utf-8"))
    import_the_slow_ones()
    with tempfile.TemporaryDirectory() as folder:
        copies, vouched = SimpleQueue(), set()
        for number in range(arguments.workers):
            copy = Path(folder) / str(number)
            shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
            copies.put(copy)

        def judge(fault):
            if time.monotonic() - started > arguments.stop_after:
                return {**fault, "outcome": "not run"}
            tests = choose(known, fault, arguments.seconds)
            copy = copies.get()
            try:
                outcome = noticed(copy, fault, tests, 3 * arguments.seconds + 60, vouched)
            finally:
                copies.put(copy)
            return {**fault, "outcome": outcome, "tests": len(tests)}

        with ThreadPoolExecutor(arguments.workers) as pool:
            judged = []
            for fault in pool.map(judge, faults):
                judged.append({key: value for key, value in fault.items() if key != "code"})
                (arguments.out / "outcomes.json").write_text(json.dumps(judged, indent=1))
                print(
                    f"{fault['outcome']:9} {fault['file']}:{fault['line']}  {fault['is']}",
                    flush=True,
                )
    print("\n" + summary(judged))


def noticed(copy, fault, tests, limit, vouched):
    """How the tests end, of which one that fails must pass without the fault, after the others."""
    sound = {**fault, "code": (ROOT / fault["file"]).read_text(encoding="utf-8")}
    while tests:
        outcome = try_out(copy, fault, tests, limit)
        failed = FAILED.findall(copy.with_suffix(".log").read_text(errors="replace"))
        last = next((i for i, test in enumerate(tests) if test in failed), None)
        if outcome != "noticed" or last is None or tests[last] in vouched:
            return outcome
        if try_out(copy, sound, tests[: last + 1], limit) == "missed":
            vouched.add(tests[last])
            return outcome
        print(f"fails without a fault: {tests[last]}", flush=True)
        tests = tests[:last] + tests[last + 1 :]
    return "unreached"


def choose(known, fault, limit):
    """The tests that reach the line: of each its quickest case first, then its second, ..."""
    reaching = known["lines"].get(fault["file"], {}).get(str(fault["line"]), [])
    if compiled_elsewhere(fault):
        reaching = known["files"].get(fault["file"], [])
    seconds = known["seconds"]
    cases = defaultdict(list)
    for number in sorted(reaching, key=seconds.__getitem__):
        cases[known["tests"][number].partition("[")[0]].append(number)
    ranked = [(rank, seconds[n], n) for ns in cases.values() for rank, n in enumerate(ns)]
    chosen, total = [], 0.0
    for _, cost, number in sorted(ranked):
        if not chosen or total + cost <= limit:
            chosen.append(known["tests"][number])
            total += cost
    return chosen


def compiled_elsewhere(fault):
    """Whether Triton compiles the function with the fault, so that coverage sees none of it run."""
    tree = ast.parse((ROOT / fault["file"]).read_text(encoding="utf-8"))
    return any(
        node.lineno <= fault["line"] <= node.end_lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any("triton" in ast.unparse(decorator) for decorator in node.decorator_list)
    )


def try_out(copy, fault, tests, limit):
    file = copy / fault["file"]
    before = file.read_text(encoding="utf-8")
    file.write_text(fault["code"], encoding="utf-8")
    try:
        child = multiprocessing.get_context("fork").Process(target=run_tests, args=(copy, tests))
        child.start()
        child.join(limit)
        if child.is_alive():
            child.kill()
            child.join()
            return "endless"
        return "missed" if child.exitcode == 0 else "noticed"
    finally:
        file.write_text(before, encoding="utf-8")


def run_tests(copy, tests):
    """In a child process: run the tests on a copy of the code; the exit code is pytest's."""
    import pytest

    os.setsid()
    os.environ.update(
        ONE_THREAD,
        PYTHONPATH=os.pathsep.join([str(copy / "src"), os.environ.get("PYTHONPATH", "")]),
    )
    os.chdir(copy)
    sys.path.insert(0, str(copy / "src"))
    sys.dont_write_bytecode = True
    log = os.open(copy.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    code = 1
    try:  # a fault may break the import of the tests, too: that is noticed
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
    finally:
        os._exit(code)


def import_the_slow_ones():
    """What takes seconds to import and is not ours: once here, not once for every fault."""
    os.environ.update(ONE_THREAD)
    import pandas
    import pytest
    import scipy.linalg
    import scipy.optimize
    import scipy.sparse.linalg
    import sklearn.ensemble
    import sklearn.svm
    import sklearn.utils.estimator_checks

    return pandas, pytest, scipy, sklearn


def summary(judged):
    rooms = defaultdict(lambda: defaultdict(int))
    for fault in judged:
        room = fault["file"].split("/")[2]
        for name in (room, "all"):
            rooms[name][fault["outcome"]] += 1
    lines = ["room          faults  noticed  endless  missed  unreached  noticed in %"]
    for room, counts in sorted(rooms.items(), key=lambda item: (item[0] == "all", item[0])):
        tried = sum(counts.values()) - counts["not run"]
        caught = counts["noticed"] + counts["endless"]
        numbers = [
            tried,
            counts["noticed"],
            counts["endless"],
            counts["missed"],
            counts["unreached"],
        ]
        lines.append(
            f"{room:12}"
            + "".join(f"{n:8}" for n in numbers)
            + f"{100 * caught / max(tried, 1):10.1f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
