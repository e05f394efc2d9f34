"""What many workers would gain, from constants that two workers gave: a model, no measurement.

``python benchmarks/many_machines_model.py docs/_static/many-machines.png`` reads the constants that
``benchmarks/many_machines.py --only constants`` kept. It draws the curves to 1,000 workers of one
core, and prints where each stops paying: where workers are idle for half of their time.
``--page`` writes these numbers into the page of measurements.

An exact step of NCA on n points, from d features to r coordinates, in g groups of tiles::

    6 n² r / R / g · ⌈g / w⌉     tiles: R operations a second on a core
    + 12 n r · log₂(w + 1) / B   three arrays of coordinates go to w workers, from whoever has them
    + 4 n (r + 2) · g / B        a sum of every group comes back to one worker
    + g · c + l                  the scheduler handles g tasks; one is there and back in l

Work chunk by chunk (transform, the fit of Nystroem), on k chunks of s seconds each::

    s · ⌈k / w⌉ + k · c + l
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kernelmetric.compute._execute import _GROUPS
from many_machines import latest, replace_block

HERE = Path(__file__).parent
WORKERS = np.unique(np.round(np.logspace(0, 3, 200)).astype(int))
RANK, LANDMARKS, FEATURES, ROWS_OF_CHUNK = 30, 1_000, 50, 50_000
GROUPS = _GROUPS[0]


def step_seconds(known, n, w, groups):
    """An exact step of NCA on w workers."""
    n_groups = groups(w)
    tiles = 6.0 * n**2 * RANK / known["operations_per_second"]
    out = 12.0 * n * RANK * np.log2(w + 1) * (w > 1)
    back = 4.0 * n * (RANK + 2) * n_groups * (w > 1)
    return (
        tiles / n_groups * np.ceil(n_groups / w)
        + (out + back) / known["bytes_per_second"]
        + (n_groups * known["seconds_per_task"] + known["seconds_there_and_back"]) * (w > 1)
    )


def chunks_seconds(known, n, w):
    """One pass of a map to landmarks over all rows."""
    n_chunks = np.ceil(n / ROWS_OF_CHUNK)
    operations = 2.0 * ROWS_OF_CHUNK * LANDMARKS * (FEATURES + LANDMARKS)
    return (
        operations / known["operations_per_second"] * np.ceil(n_chunks / w)
        + n_chunks * known["seconds_per_task"]
        + known["seconds_there_and_back"]
    )


def as_built(w):
    return GROUPS


def four_a_worker(w):
    return np.maximum(GROUPS, 4 * w)


def stops_paying(gain):
    """The largest number of workers that are busy for half of their time."""
    return int(WORKERS[np.flatnonzero(gain >= 0.5 * WORKERS)[-1]])


def gains(seconds):
    at = np.array([seconds(w) for w in WORKERS])
    return at[0] / at


def curves(known):
    """Title, colour, style and gain of every curve, for two pictures."""
    steps, chunks = [], []
    sizes = ((30_000, "tab:blue"), (100_000, "tab:orange"), (1_000_000, "tab:green"))
    for n, colour in sizes:
        for style, groups in (("-", as_built), ("--", four_a_worker)):
            gain = gains(lambda w, n=n, groups=groups: step_seconds(known, n, w, groups))
            name = f"{n:,} points" + (", groups of tiles: 4 a worker" if style == "--" else "")
            steps.append((name, colour, style, gain))
    for n, colour in ((10**6, "tab:blue"), (10**7, "tab:orange"), (10**8, "tab:green")):
        gain = gains(lambda w, n=n: chunks_seconds(known, n, w))
        chunks.append((f"10{'⁶⁷⁸'[int(np.log10(n)) - 6]} rows", colour, "-", gain))
    return steps, chunks


def draw(path, found):
    """The picture of the guide."""
    steps, chunks = curves(found["constants"])
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.9), layout="constrained", sharey=True)
    titles = (
        f"one exact step of NCA, {FEATURES} features to {RANK}",
        f"one pass by chunks, {LANDMARKS:,} landmarks",
    )
    for axis, title, lines in zip(axes, titles, (steps, chunks), strict=True):
        axis.plot(WORKERS, WORKERS, color="0.8", linewidth=1)
        axis.text(260, 330, "ideal", color="0.55", fontsize=8, rotation=38, ha="center")
        for name, colour, style, gain in lines:
            thin = style == "--"
            label = None if thin else name
            axis.loglog(WORKERS, gain, style, color=colour, linewidth=1 if thin else 2, label=label)
            if not thin:
                end = stops_paying(gain)
                axis.plot(end, gain[WORKERS == end], "o", color=colour, markersize=6)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("workers of one core")
        axis.set_xlim(1, 1_000)
        axis.set_ylim(1, 1_000)
        axis.grid(alpha=0.2)
    if "nca" in found:
        record = found["nca"]
        one, two = (min(s for s, _ in record[who]) for who in ("one", "two"))
        label = f"measured, {record['shape'][0]:,} points"
        axes[0].plot([2], [one / two], "k*", markersize=9, label=label, zorder=5)
    axes[0].set_ylabel("gain over one worker")
    axes[0].plot([], [], "--", color="0.4", linewidth=1, label="if cut into 4 groups a worker")
    axes[1].plot([], [], "o", color="0.4", label="half of the workers' time is idle")
    for axis in axes:
        axis.legend(fontsize=8, loc="upper left")
    figure.suptitle("A model from constants of two workers, not a measurement", fontsize=10)
    figure.savefig(path, dpi=110)


def lines_of(found):
    """Where every curve stops paying."""
    steps, chunks = curves(found["constants"])
    lines = ["| work | stops paying at | gain there | gain at 1,000 |", "|---|---|---|---|"]
    for title, group in (("exact step", steps), ("pass by chunks", chunks)):
        for name, _, _, gain in group:
            end = stops_paying(gain)
            workers = f"{end:,} workers" if end < WORKERS[-1] else "beyond 1,000 workers"
            lines.append(
                f"| {title}, {name} | {workers} | {gain[WORKERS == end][0]:.1f} × | "
                f"{gain[-1]:.1f} × |"
            )
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("picture", type=Path, help="file to write")
    parser.add_argument("--results", type=Path, default=HERE / "many_machines.jsonl")
    parser.add_argument("--page", type=Path, help="write the table of this page")
    options = parser.parse_args()
    found = latest(options.results)
    draw(options.picture, found)
    print("\n".join(lines_of(found)))
    if options.page:
        replace_block(options.page, "model", lines_of(found))


if __name__ == "__main__":
    main()
