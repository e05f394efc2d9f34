"""Build a release, install it into an empty environment, and try it there: ``make release-check``.

Each step prints one line, and the first that fails ends the check with what went wrong:

1. sdist and wheel are built, the wheel from the sdist, and ``twine check`` reads their metadata;
2. the wheel holds the library and nothing else: typed, with its licence and its compiled file;
3. it installs into an empty environment in which every compiler fails;
4. from a folder without the sources, the examples of the README run against it;
5. the import takes at most ``--import-ratio`` times as long as that of ``sklearn.neighbors``;
6. all extras together can be resolved, and ``kernelmetric --version`` answers (not with
   ``--no-extras``, since it asks the index).

What is built stays in ``dist``.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def run(*command, **options):
    """Run a command and return what it printed; end the check where it fails."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}\nfailed.")
    return done.stdout


def build():
    """Make sdist and wheel anew, and let twine read them."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    for path in (sdist, wheel):
        print(f"built    {path.name}, {path.stat().st_size / 1e3:,.0f} kB; twine has no complaint")
    return wheel


def look_into(wheel):
    """See that the wheel holds what it should."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        lines = sum(archive.read(n).count(b"\n") for n in names if n.endswith(".py"))
    foreign = {name.split("/")[0].split("-")[0] for name in names} - {"kernelmetric"}
    if foreign:
        sys.exit(f"The wheel also holds {sorted(foreign)}.")
    for needed in ("kernelmetric/py.typed", "licenses/LICENSE"):
        if not any(name.endswith(needed) for name in names):
            sys.exit(f"The wheel lacks {needed}.")
    compiled = [name for name in names if name.endswith(".so")]
    print(f"holds    {len(names)} files, {lines:,} lines of Python, compiled: {len(compiled)}")
    return bool(compiled)


def install(wheel, folder):
    """Install the wheel where nothing is installed and nothing can be compiled."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python" if os.name != "nt" else folder / "Scripts" / "python.exe"
    nothing = {**os.environ, "CC": "/bin/false", "CXX": "/bin/false"}
    nothing.pop("PYTHONPATH", None)
    run(python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel, env=nothing)
    installed = run(python, "-m", "pip", "list", "--format=freeze", env=nothing).split()
    others = {line.partition("==")[0] for line in installed} - {"pip", "setuptools", "kernelmetric"}
    print(f"installs without a compiler, beside {', '.join(sorted(others))}")
    return python, nothing


def try_out(python, environment, folder, *, compiled):
    """Run the README against what was installed."""
    script = folder / "readme.py"
    check = (
        "from kernelmetric.compute.backends._native import native\nassert native() is not None\n"
    )
    where = f"import kernelmetric\nassert {str(folder)!r} in kernelmetric.__file__\n"
    script.write_text(where + (check if compiled else "") + "\n".join(SNIPPETS), encoding="utf-8")
    start = time.perf_counter()
    run(python, script, cwd=folder, env=environment)
    print(f"runs     {len(SNIPPETS)} examples of the README in {time.perf_counter() - start:.0f} s")


def import_seconds(python, environment, folder):
    """Seconds of our import and of scikit-learn's, less those of Python: the best of five."""

    def best(statement):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            run(python, "-c", statement, cwd=folder, env=environment)
            times.append(time.perf_counter() - start)
        return min(times)

    empty = best("pass")
    return best("import kernelmetric") - empty, best("import sklearn.neighbors") - empty


def main():
    """Do all steps."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--import-ratio", type=float, default=2.0, help="beside sklearn.neighbors")
    parser.add_argument("--no-extras", action="store_true", help="do not resolve the extras")
    arguments = parser.parse_args()
    wheel = build()
    compiled = look_into(wheel)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        python, environment = install(wheel, folder / "venv")
        try_out(python, environment, folder, compiled=compiled)
        ours, theirs = import_seconds(python, environment, folder)
        print(f"imports  in {ours:.2f} s, beside {theirs:.2f} s of sklearn.neighbors")
        if ours > arguments.import_ratio * theirs:
            sys.exit(f"The import takes more than {arguments.import_ratio} times as long.")
        if not arguments.no_extras:
            everything = f"{wheel}[all]"
            run(python, "-m", "pip", "install", "--dry-run", "--quiet", everything, env=environment)
            print("resolves kernelmetric[all]")
            run(python, "-m", "pip", "install", "--quiet", f"{wheel}[cli]", env=environment)
            answer = run(python, "-m", "kernelmetric", "--version", cwd=folder, env=environment)
            print(f"answers  {answer.strip()}")
    print("The release is good.")


if __name__ == "__main__":
    main()
