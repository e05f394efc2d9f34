"""What a user gets when installing: light imports, documented names, honest metadata."""

import importlib.metadata
import inspect
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kernelmetric

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]

# Never needed to import the library: what the extras bring, and the tools of development.
OPTIONAL = {
    re.match(r"[\w-]+", requirement).group()
    for name, requirements in EXTRAS.items()
    if name != "all"
    for requirement in requirements
} | {"array_api_strict", "numpydoc", "pytest", "sphinx", "tqdm"}


# Notes every import statement that a module of ours runs, guarded by try or not.
RECORDER = """
import builtins
original, asked = builtins.__import__, set()
def record(name, globals=None, *rest):
    if (globals or {}).get("__name__", "").partition(".")[0] == "kernelmetric":
        asked.add(name.partition(".")[0])
    return original(name, globals, *rest)
builtins.__import__ = record
"""


@pytest.fixture(scope="module")
def names():
    """What a fresh process has loaded before and after our import, and what we asked for."""
    # scikit-learn and its own dependencies load pandas and others when they find them.
    code = (
        "import json, sys, numpy, scipy, sklearn.neighbors, array_api_compat\n"
        f"found = {{'theirs': sorted(sys.modules)}}\n{RECORDER}\nimport kernelmetric\n"
        "found |= {'loaded': sorted(sys.modules), 'asked': sorted(asked)}\nprint(json.dumps(found))"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found = json.loads(run.stdout)
    return {key: {name.partition(".")[0] for name in some} for key, some in found.items()}


def test_the_import_loads_no_optional_dependency(names):
    assert sorted((names["loaded"] - names["theirs"]) & OPTIONAL) == []


def test_no_module_of_ours_asks_for_an_optional_dependency_when_imported(names):
    asked = names["asked"]
    assert "sklearn" in asked  # else nothing was recorded
    assert sorted(asked & OPTIONAL) == []


@pytest.mark.parametrize("name", kernelmetric.__all__)
def test_public_names_exist_and_are_documented(name):
    thing = getattr(kernelmetric, name)
    assert inspect.getdoc(thing), f"kernelmetric.{name} has no docstring"
    if inspect.isclass(thing):
        assert thing.__doc__, f"kernelmetric.{name} only inherits its docstring"


def test_a_star_imports_the_short_list():
    names = {}
    exec("from kernelmetric import *", names)  # noqa: S102, RUF100
    assert set(names) - {"__builtins__"} == set(kernelmetric.__all__)
    assert set(kernelmetric.__all__) <= set(dir(kernelmetric))
    assert not set(dir(kernelmetric)) & set(kernelmetric._MOVED)


@pytest.mark.parametrize(("name", "room"), kernelmetric._MOVED.items())
def test_a_name_that_moved_to_its_room_still_works_and_says_where_it_is(name, room):
    statement = f"from kernelmetric.{room} import {name}"
    with pytest.warns(DeprecationWarning, match=f"Got {name} .*: try {statement}. "):
        old = getattr(kernelmetric, name)
    names = {}
    exec(statement, names)  # noqa: S102, RUF100
    assert old is names[name]
    assert name in sys.modules[f"kernelmetric.{room}"].__all__


def test_the_warning_of_a_moved_name_points_at_the_line_that_imports_it():
    statement = compile("from kernelmetric import Sum", "script of a user.py", "exec")
    with pytest.warns(DeprecationWarning) as caught:
        exec(statement, {})  # noqa: S102, RUF100
    assert caught[0].filename == "script of a user.py"


def test_a_warning_that_moved_to_its_room_still_works():
    with pytest.warns(DeprecationWarning, match="try from kernelmetric.inputs import FarCell"):
        old = kernelmetric.compute.FarCellWarning
    assert old is kernelmetric.inputs.FarCellWarning


def test_the_command_that_tries_a_wheel_out_runs():
    """Whether the library is compiled is another question, where there is no compiler."""
    command = PROJECT["tool"]["cibuildwheel"]["test-command"]
    (statement,) = re.findall(r'python -c "(.*?);', command)
    names = {}
    exec(statement, names)  # noqa: S102, RUF100
    assert callable(names["native"])


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Distance'"):
        kernelmetric.Distance  # noqa: B018


def test_public_names_are_listed_once():
    assert len(set(kernelmetric.__all__)) == len(kernelmetric.__all__)


def test_the_version_is_that_of_the_installed_package():
    assert kernelmetric.__version__ == importlib.metadata.version("kernelmetric"), (
        "the installed metadata is stale: reinstall the package, or run `make clean`"
    )


CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_changelog_knows_the_version():
    release = re.match(r"\d+\.\d+\.\d+", kernelmetric.__version__).group()
    assert f"## [{release}]" in CHANGELOG


def test_the_changelog_keeps_its_form():
    releases = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert releases[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", r) for r in releases[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", CHANGELOG, re.MULTILINE)) <= kinds


def test_the_citation_names_the_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    release = re.match(r"\d+\.\d+\.\d+", kernelmetric.__version__).group()
    assert f"\nversion: {release}\n" in citation


def test_the_extra_all_installs_every_extra_but_the_largest():
    (everything,) = EXTRAS["all"]
    named = re.fullmatch(r"kernelmetric\[([\w,-]+)\]", everything).group(1).split(",")
    assert set(named) == set(EXTRAS) - {"all", "torch", "molecules"}


def test_the_page_of_the_installation_names_every_extra():
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert [name for name in EXTRAS if f"| `{name}` |" not in page] == []


def test_the_oldest_versions_tested_are_the_lower_bounds_promised():
    lines = (ROOT / "tests" / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    requirements = [*PROJECT["project"]["dependencies"]]
    for name, group in EXTRAS.items():
        if name not in {"all", "torch", "molecules"}:  # these two have environments of their own
            requirements += group
    for requirement in requirements:
        name, bound = re.sub(r"\[\w+\]", "", requirement).split(">=")  # extras aside
        assert (tested[name] + ".").startswith(bound + "."), (
            f"promised {requirement}, tested {tested[name]}"
        )


def test_the_core_dependencies_are_few():
    names = {re.match(r"[\w-]+", r).group() for r in PROJECT["project"]["dependencies"]}
    come_with_scikit_learn = {"joblib", "threadpoolctl"}
    assert names == {"numpy", "scipy", "scikit-learn", "array-api-compat"} | come_with_scikit_learn


def test_the_wheel_holds_the_library_alone():
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/kernelmetric"]
    assert [path.name for path in (ROOT / "src").iterdir() if path.is_dir()] == ["kernelmetric"]


def test_no_large_file_is_tracked():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    assert [str(f) for f in files if f.is_file() and f.stat().st_size > 500_000] == []


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_readme_names_the_first_commands(command):
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_installed_package_says_that_it_is_typed():
    assert (Path(kernelmetric.__file__).parent / "py.typed").is_file()


def test_what_goes_away_warns_in_one_form_at_the_line_of_the_user():
    call = "deprecated('Got tol=0, but it has no effect', 'max_iter=5', stacklevel=1)"
    statement = compile(call, "script of a user.py", "exec")
    with pytest.warns(DeprecationWarning, match="no effect: try max_iter=5. The next minor") as got:
        exec(statement, {"deprecated": kernelmetric._warnings.deprecated})  # noqa: S102, RUF100
    assert got[0].filename == "script of a user.py"


def test_every_way_out_is_through_the_one_mechanism():
    sources = (ROOT / "src").rglob("*.py")
    own = [path.name for path in sources if "DeprecationWarning" in path.read_text("utf-8")]
    assert own == ["_warnings.py"]
