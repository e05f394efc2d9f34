"""Defaults of functions that rooms lend each other: their docstrings do not list them."""

import inspect
import operator

import numpy as np
import pytest

import kernelmetric
import kernelmetric.report

DEFAULTS = {
    "compute.reductions.BlockProduct": {"rough": False, "far": False},
    "compute.bytes_at_once": {"operations": np.inf},
    "compute.precise": {"if_cheap": False},
    "compute.rough": {"tol": None, "operations": np.inf, "size": 1.0, "dense": False},
    "compute.small_steps": {"largest": np.inf},
    "inputs.check_points": {"accept_sparse": False},
    "_warnings.deprecated": {"stacklevel": 2},
    "compute.reductions.gram_products": {"population": None, "weights": None},
    "compute.reductions.lmnn_at_lengths": {"every": 1, "weighed": None},
    "compute.reductions.lmnn_hinge": {"smoothing": 0.0, "weighed": None},
    "compute.reductions.lmnn_step_on": {"smoothing": 0.0, "weighed": None},
    "compute.map_rows": {"most": None},
    "compute.reductions.median_squared_distance": {
        "weights": None,
    },
    "compute.reductions.sampled_squared_distances": {
        "weights": None,
    },
    "compute.reductions.mine_impostors": {"slack": 0.5, "most": 200, "weighed": None},
    "compute.reductions.nca_loss": {"weights": None},
    "compute.reductions.nearest_neighbors": {"queries": None},
    "compute.over_rows": {"most": None},
    "compute.require_memory": {"in_full": 0.0},
    "compute.reductions.row_products": {"means": None, "weights": None},
    "compute.reductions.softmax_reduction": {"weights": None},
    "compute.reductions.squared_distances": {"B": None},
    "compute.sum_rows": {"most": None, "flops": 0.0},
    "inputs.with_class_weights": {"rows": None},
    "compute.fits_budget": {"share": 1.0},
    "graphs.check_graph": {"negative": False},
    "graphs.check_rows": {"width": 2},
    "graphs.discriminant_graph": {"weights": None},
    "graphs.gaussian_graph": {"width": None},
    "graphs.heat_graph": {"codes": None, "weights": None},
    "graphs.pair_distances": {"precomputed": False},
    "graphs.patch_graph": {"weights": None},
    "kernels.form_alignment": {"weights": None},
    "kernels.gram_alignment": {"weights": None},
    "kernels.values_of": {"B": None},
    "report.png_bytes": {"dpi": 150},
    "report.rich_table": {"title": None},
    "report.visible": {"most": None, "keep": ""},
    "solvers.Grid": {"judged": None, "roots": None},
    "solvers._lbfgs.Minimum": {"corrections": None},
    "solvers.PairDual": {"prior": None, "psd": True},
    "solvers.krylov_eigenpairs": {"floor": 0.0},
    "solvers._ridge_grid.left_out": {"judged": None, "roots": None},
    "solvers.minimize_lbfgs": {"report": None, "memory": 10, "corrections": None},
    "solvers.ridge_solution": {"roots": None},
    "solvers.smallest_eigenvectors": {
        "null": None,
        "start": None,
        "tol": 1e-06,
        "max_iter": 500,
        "random_state": None,
    },
    "solvers.solve_pairs": {
        "tol": 0.001,
        "max_iter": 2000,
        "metric": None,
        "solver": "auto",
        "sharp": True,
        "report": None,
    },
    "solvers.sparse_precision": {"tol": 0.0001, "max_iter": 1000, "start": None, "report": None},
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_function_that_rooms_lend_each_other_keeps_its_defaults(name):
    parameters = inspect.signature(operator.attrgetter(name)(kernelmetric)).parameters
    assert {key: parameters[key].default for key in DEFAULTS[name]} == DEFAULTS[name]
