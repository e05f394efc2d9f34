"""One list of learners, one of kernels: whoever enters is exported, listed and tested."""

import inspect
import subprocess
import sys

import pytest
from sklearn.base import clone

import kernelmetric
from kernelmetric import learners
from kernelmetric.kernels._registry import KERNELS as NAMED_KERNELS
from tested_learners import VARIANTS, descending, readme_row, robust, spectral, variants


class Toy(learners.GradientLearner):
    """A learner that somebody wrote just now."""

    learns_from = "targets"

    def __init__(self, init="auto"):
        self.init = init


@pytest.fixture
def with_toy(monkeypatch):
    monkeypatch.setattr(learners, "LEARNERS", (*learners.LEARNERS, Toy))


def kinds(instances):
    return {type(instance) for instance in instances}


def test_a_new_entry_is_picked_up_by_every_list(with_toy):
    for found in (variants(), robust(), descending(), variants("targets")):
        assert Toy in kinds(found)
    for found in (spectral(), variants("labels"), robust("pairs")):
        assert Toy not in kinds(found)
    assert "for regression `MLKR`, `Toy`" in readme_row()


@pytest.mark.slow
def test_a_new_entry_is_exported_by_its_room_and_by_the_package():
    code = """
import importlib
import kernelmetric
from kernelmetric.learners import _registry, _nca
_registry.Toy = type("Toy", (_nca.NCA,), {})
for module in (kernelmetric.learners, kernelmetric):
    importlib.reload(module)
    assert module.Toy is _registry.Toy
    assert "Toy" in module.__all__
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_learner_of_the_room_is_in_the_registry():
    public = (getattr(learners, name) for name in learners.__all__)
    bases = {learners.Learner, learners.GradientLearner, learners.SpectralLearner}
    found = {thing for thing in public if inspect.isclass(thing)}
    assert found - bases == set(learners.LEARNERS)
    assert kinds(variants()) == kinds(robust()) == set(learners.LEARNERS)
    assert {kind.__name__ for kind in learners.LEARNERS} <= set(kernelmetric.__all__)


def test_every_learner_says_what_it_learns_from():
    needs = {kind.learns_from for kind in learners.LEARNERS}
    assert needs == {"labels", "targets", "pairs", "comparisons", "chunks", "points"}


@pytest.mark.every(3)
@pytest.mark.parametrize("kind", learners.LEARNERS, ids=lambda kind: kind.__name__)
def test_what_a_learner_learns_from_is_enough_for_its_fit(kind, labelled):
    X, y = labelled
    enough = {
        "labels": {"y": y},
        "targets": {"y": X[:, 0]},
        "pairs": {"similar": [[0, 3], [1, 4]], "dissimilar": [[0, 1], [1, 2]]},
        "comparisons": {"triplets": [[0, 3, 1], [1, 4, 0], [2, 5, 1]]},
        "chunks": {"chunks": y},
        "points": {},
    }
    learner = clone(VARIANTS.get(kind, [kind()])[0])
    assert learner.fit(X, **enough[kind.learns_from]).components_.shape[1] == X.shape[1]


def test_the_command_line_takes_every_kernel_of_points():
    pytest.importorskip("click", reason="click comes with the extra `cli`")
    from kernelmetric.cli._options import KERNELS

    of_points = {kind.__name__.lower() for kind in NAMED_KERNELS if not kind.pairwise} - {"delta"}
    assert set(KERNELS) - of_points == {"auto", "aligned", "none", "poly"}
    assert of_points <= set(KERNELS)


def test_the_command_line_predicts_numbers_by_every_learner_that_takes_them(monkeypatch):
    pytest.importorskip("click", reason="click comes with the extra `cli`")
    from kernelmetric.cli import _options

    toy = type("Toy", (learners.RFM,), {})
    monkeypatch.setattr(_options, "LEARNERS", {"toy": toy} | _options.LEARNERS)
    assert _options.Wanted(task="regression", learner="toy").learner_name == "toy"
    assert _options.Wanted(task="regression").learner_name == "mlkr"
