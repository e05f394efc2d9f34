"""Check what the documentation says about sizes, seconds and memory.

``stated_sizes.py`` lists what is said where. ``python tools/check_sizes.py`` does what the pages
recommend, each in a process of its own. It fails if something raises, or takes more than twice the
seconds or megabytes that the page states. What would take long is run on fewer rows, and the limit
shrinks as the work does; ``--full`` runs it at the size of the page. Numbers of rows at which
something changes are compared with what the library does. What needs another machine, other data
or minutes is listed with its command.

The words of every entry must still stand on its page. ``--only WORD`` takes the entries whose page
or words have it, ``--list`` runs nothing. On a busy machine a run has one thread, and its seconds
are those of the processor divided by the number of threads that the page has in mind: as if these
shared the work evenly.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from typing import Any

from stated_sizes import ELSEWHERE, FACTS, ROOT, RUNS, Fact


def missing_words() -> list[str]:
    """Entries whose words no longer stand on their page."""
    entries = [(entry.page, entry.words) for entry in (*RUNS, *FACTS)]
    return [
        f"{page} no longer says: {words}"
        for page, words in [*entries, *ELSEWHERE]
        if " ".join(words.split()) not in " ".join((ROOT / page).read_text("utf-8").split())
    ]


def wrong_facts(facts: list[Fact]) -> list[str]:
    """Facts that the library does not bear out."""
    found = [(fact, fact.found()) for fact in facts]
    return [f"{f.page}: {f.words}: it is {value!r}" for f, value in found if value != f.said]


def peak_megabytes() -> float:
    """The most memory that this process has held."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def measure(number: int, n: int) -> dict[str, float]:
    """Do the work of one run in this process."""
    run = RUNS[number]
    warnings.simplefilter("ignore")
    work = run.work(n)
    before = peak_megabytes()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall": wall, "cpu": cpu, "megabytes": peak_megabytes() - before}


def outcome(number: int, full: bool) -> str | None:
    """Run one of the list in a process of its own, and print it; what is wrong, or None."""
    run = RUNS[number]
    n, (seconds, megabytes) = run.size(full), run.limit(full)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    busy = os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1)
    environment = os.environ | dict.fromkeys(names, "1" if busy else str(run.threads))
    command = [sys.executable, __file__, "--one", str(number), str(n)]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    what = f"{run.page}: {' '.join(run.words.split())}"
    if told.returncode:
        return f"{what}: {told.stderr.strip().splitlines()[-1]}"
    row = json.loads(told.stdout.splitlines()[-1])
    spent = row["cpu"] / run.threads if busy else row["wall"]
    scaled = "" if n == run.stated else f", instead of {run.stated:,}"
    limits = f"limits {seconds:.1f} s, {megabytes:.0f} MB"
    line = f"{spent:.1f} s, {row['megabytes']:.0f} MB ({limits}; {n:,} rows{scaled})"
    print(f"{what}\n    {line}", flush=True)
    if spent > seconds or row["megabytes"] > megabytes:
        return f"{what}: {line}"
    return None


def main() -> None:
    """Check what was asked for; the exit status is 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true", help="run at the sizes of the pages")
    parser.add_argument("--list", action="store_true", help="run nothing")
    parser.add_argument("--only", default="", help="entries whose page or words have this")
    parser.add_argument("--one", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*arguments.one)))
        return

    def wanted(entry: Any) -> bool:
        return arguments.only in f"{entry.page} {entry.words}"

    wrong = missing_words() + wrong_facts([fact for fact in FACTS if wanted(fact)])
    for number, run in enumerate(RUNS):
        if not wanted(run):
            continue
        if arguments.list:
            print(f"{run.page}: {' '.join(run.words.split())}")
            continue
        fault = outcome(number, arguments.full)
        wrong += [] if fault is None else [fault]
    for (page, words), command in ELSEWHERE.items():
        print(f"{page}: {words}\n    elsewhere: {command}")
    for fault in wrong:
        print(f"WRONG {fault}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
