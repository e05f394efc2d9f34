"""Adapted vectors come back from every store that is installed, and from an ONNX model."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from kernelmetric import Adapter, to_onnx
from kernelmetric.retrieval import Drift

FILE = Path(__file__).parents[1] / "examples" / "stores" / "stores.py"


def script():
    spec = importlib.util.spec_from_file_location("stores", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["stores"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def learned():
    queries, documents = script().vectors_of_things(200, 16)
    pairs = np.column_stack([np.arange(150)] * 2)
    fits = {
        side: Adapter(side, softmax=False).fit(queries, documents=documents, pairs=pairs)
        for side in ("symmetric", "query")
    }
    return fits, queries, documents


@pytest.mark.every(4)
@pytest.mark.parametrize("side", ["symmetric", "query"])
@pytest.mark.parametrize("store", ["faiss", "usearch", "duckdb", "lancedb"])
def test_a_store_finds_what_the_adapter_finds(store, side, learned, tmp_path):
    pytest.importorskip(store, reason=f"{store} comes with the group `stores`")
    fits, queries, documents = learned
    adapter = fits[side]
    ask = script().STORES[store](adapter, documents, tmp_path)
    Q, D = adapter.transform(queries[150:]), adapter.transform_documents(documents)
    expected = np.argsort(-Q @ D.T, axis=1, kind="stable")[:, :5]
    got = np.array([ask(query, 5) for query in Q])
    share = np.mean([len(np.intersect1d(a, b)) / 5 for a, b in zip(got, expected, strict=True)])
    assert share > (0.9 if store == "usearch" else 0.99)


@pytest.mark.every(2)
@pytest.mark.parametrize("geometry", ["cosine", "euclidean"])
def test_the_onnx_model_maps_queries(geometry, learned):
    onnxruntime = pytest.importorskip("onnxruntime", reason="it comes with the extra `onnx`")
    pytest.importorskip("onnx", reason="it comes with the extra `onnx`")
    _, queries, documents = learned
    pairs = np.column_stack([np.arange(150)] * 2)
    both = Adapter("both", geometry, softmax=False).fit(queries, documents=documents, pairs=pairs)
    drift = Drift(geometry).fit(queries, documents[:, :7])
    for model in (both, drift):
        made = to_onnx(model)
        session = onnxruntime.InferenceSession(made.SerializeToString())
        (Z,) = session.run(None, {"X": queries})
        np.testing.assert_allclose(Z, model.transform(queries), atol=1e-5)
    with pytest.raises(NotFittedError):
        to_onnx(Adapter())
