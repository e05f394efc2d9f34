"""Pictures of kernels: what is drawn is what was learned."""

import sys

import numpy as np
import pytest

from kernelmetric.kernels import RBF, Delta, Linear, polynomial_degrees, rbf_widths
from kernelmetric.report import MissingExtraError, plot_gram, plot_kernel_weights, png_bytes
from kernelmetric.selection import KernelAlignment


@pytest.fixture
def pyplot():
    plt = pytest.importorskip("matplotlib.pyplot", reason="comes with the extra `plot`")
    yield plt
    plt.close("all")


def heights(ax):
    return np.array([bar.get_height() for bar in ax.patches])


def texts(labels):
    return [label.get_text() for label in labels]


def test_every_base_kernel_has_a_bar_and_the_bars_are_shares(pyplot, labelled):
    kernel = KernelAlignment([*rbf_widths(), Delta()], centered=True).bind(*labelled)
    ax = plot_kernel_weights(kernel)
    np.testing.assert_allclose(heights(ax), kernel.weights_ / kernel.weights_.sum())
    assert f"{kernel.alignment_:.3f}" in ax.get_title()
    assert png_bytes(ax, dpi=40).startswith(b"\x89PNG")


def test_a_kernel_that_was_left_out_shows_no_alignment(pyplot, labelled):
    kernel = KernelAlignment([RBF(gamma=0.1), RBF(gamma=1e-12)], centered=True).bind(*labelled)
    dots = plot_kernel_weights(kernel).lines[0].get_ydata()
    assert dots[0] == kernel.base_alignments_[0]
    assert np.isnan(dots[1])


@pytest.mark.slow
def test_names_of_21_widths_do_not_overlap(pyplot, labelled):
    ax = plot_kernel_weights(KernelAlignment().bind(*labelled))
    assert len(set(texts(ax.get_xticklabels()))) == 21
    assert max(map(len, texts(ax.get_xticklabels()))) <= 7
    assert ax.get_xlabel() == "γ of RBF"
    figure = ax.figure
    figure.canvas.draw()
    centres = [ax.transData.transform((place, 0))[0] for place in ax.get_xticks()]
    line = ax.get_xticklabels()[0].get_fontsize() * figure.dpi / 72
    assert np.min(np.diff(centres)) > line  # slanted names need the height of one line each


def test_kinds_are_named_where_they_differ_and_names_may_be_given(pyplot, labelled):
    kernel = KernelAlignment([RBF(gamma=0.25), Linear(), *polynomial_degrees()[1:3]]).bind(
        *labelled
    )
    names = ["RBF 0.25", "Linear", "degree 2", "degree 3"]
    assert texts(plot_kernel_weights(kernel).get_xticklabels()) == names
    ax = plot_kernel_weights(kernel, labels=list("abcd"))
    assert texts(ax.get_xticklabels()) == list("abcd")
    with pytest.raises(ValueError, match="Got 1 labels for 4 base kernels"):
        plot_kernel_weights(kernel, labels=["a"])


def test_any_sum_shows_its_own_weights(pyplot):
    ax = pyplot.subplots()[1]
    assert plot_kernel_weights(RBF(gamma=1.0) + 0.1 * Delta(width=1.0), ax=ax) is ax
    np.testing.assert_allclose(heights(ax), [1.0, 0.1])


def test_a_gram_matrix_is_drawn_class_by_class(pyplot, labelled):
    X, y = labelled
    kernel = RBF(gamma=0.3)
    ax = plot_gram(kernel, X, y, title="by class")
    order = np.argsort(y, kind="stable")
    np.testing.assert_allclose(ax.images[0].get_array(), kernel(X)[np.ix_(order, order)])
    assert texts(ax.get_yticklabels()) == ["0", "1", "2"]
    np.testing.assert_allclose(ax.get_yticks(), [4.5, 14.5, 24.5])  # in the middle of ten rows
    borders = {line.get_ydata()[0] for line in ax.lines if len(set(line.get_ydata())) == 1}
    assert borders == {9.5, 19.5}
    assert ax.get_title() == "by class"


def test_a_matrix_and_its_kernel_give_the_same_picture(pyplot, labelled):
    X, y = labelled
    kernel = RBF(gamma=0.3)
    pictures = [plot_gram(kernel, X, y), plot_gram(kernel(X), y=y)]
    first, second = (ax.images[0].get_array() for ax in pictures)
    np.testing.assert_allclose(first, second)


def test_a_centred_gram_matrix_has_colours_even_about_zero(pyplot, labelled):
    image = plot_gram(RBF(gamma=0.3), labelled[0], centered=True).images[0]
    assert image.norm.vmin == -image.norm.vmax
    np.testing.assert_allclose(image.get_array().mean(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((3, 2)),), "expected a square Gram matrix"),
        ((RBF(gamma=1.0),), "Got a kernel without X"),
        ((np.eye(3), None, [0, 1]), "Got 2 labels for a Gram matrix of 3"),
        ((RBF(gamma=1.0), np.zeros((2001, 1))), "try a random subset"),
    ],
)
def test_what_cannot_be_drawn_is_refused(pyplot, arguments, message):
    with pytest.raises(ValueError, match=message):
        plot_gram(*arguments)


def test_a_missing_matplotlib_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r'pip install "kernelmetric\[plot\]"'):
        plot_gram(np.eye(2))
    with pytest.raises(MissingExtraError, match=r'pip install "kernelmetric\[plot\]"'):
        plot_kernel_weights(RBF() + Delta())
