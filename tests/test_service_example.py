"""The service of the examples answers, and refuses a bad request in a sentence."""

import importlib.util
import json
import sys
import threading
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest

from kernelmetric import DNE, Kernelized, MetricClassifier, save

pd = pytest.importorskip("pandas", reason="pandas comes with the extra `pandas`")
FOLDER = Path(__file__).parents[1] / "examples" / "service"


def script(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def frame():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"kg": rng.gamma(2.0, size=80), "kind": rng.choice(["a", "b"], 80)})
    frame.loc[::9, "kg"] = np.nan
    return frame


@pytest.fixture(scope="module")
def model(frame):
    y = np.where((frame["kg"] > 2) ^ (frame["kind"] == "b"), "ripe", "green")
    return MetricClassifier(Kernelized(DNE(2)), cv=2).fit(frame, y)


@pytest.fixture(scope="module")
def server(model, tmp_path_factory):
    path = save(model, tmp_path_factory.mktemp("service") / "model.km")
    server = script("service").make_server(path, port=0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def ask(server, body, path="/predict", method="POST"):
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request(method, path, body)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


def records(frame):
    return json.loads(frame.to_json(orient="records"))


def test_the_service_answers_what_the_model_predicts(server, model, frame):
    status, answer = ask(server, json.dumps({"rows": records(frame.head(12))}))
    assert status == 200
    chances = [[p["probabilities"][c] for c in model.classes_] for p in answer["predictions"]]
    np.testing.assert_allclose(chances, model.predict_proba(frame.head(12)), atol=1e-12)
    assert [p["class"] for p in answer["predictions"]] == model.predict(frame.head(12)).tolist()
    novelty = [p["novelty"] for p in answer["predictions"]]
    np.testing.assert_allclose(novelty, -model.score_samples(frame.head(12)))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{", "The body is not JSON"),
        ("[1]", 'Expected {"rows"'),
        ('{"rows": []}', "with a row or more"),
        ('{"rows": [{"kg": 1.0}]}', "Row 0 lacks the column 'kind'"),
        ('{"rows": [{"kg": "heavy", "kind": "a"}]}', "column 'kg'"),
    ],
)
def test_a_bad_request_is_refused_in_a_sentence(server, body, reason):
    status, answer = ask(server, body)
    assert status == 400
    assert reason in answer["error"]


def test_too_many_rows_are_refused(server):
    status, answer = ask(server, json.dumps({"rows": [{"kg": 1.0, "kind": "a"}] * 1001}))
    assert status == 400
    assert "1,001 rows" in answer["error"]


def test_another_path_is_not_found_and_health_names_the_columns(server):
    assert ask(server, "{}", path="/other")[0] == 404
    status, answer = ask(server, None, path="/health", method="GET")
    assert status == 200
    assert answer["columns"] == ["kg", "kind"]


def test_one_bad_request_spoils_no_other_of_its_batch(model, tmp_path, frame):
    service = script("service")
    together = service.Together(service.Model(save(model, tmp_path / "model.km")))
    rows = records(frame.head(3))
    bad = {"kg": "heavy", "kind": "a"}
    batch = [([rows[0]], service.Future()), ([bad], service.Future()), (rows[1:], service.Future())]
    together._answer(batch)
    assert [len(batch[0][1].result()), len(batch[2][1].result())] == [1, 2]
    with pytest.raises(service.RefusedError, match="kg"):
        batch[1][1].result()
    alone = model.predict(frame.head(3)).tolist()
    assert [p["class"] for p in batch[0][1].result() + batch[2][1].result()] == alone


@pytest.mark.slow
def test_many_clients_are_answered(server, frame):
    took, _ = script("clients").run_clients(
        "127.0.0.1", server.server_port, records(frame), n_clients=20, n_requests=3
    )
    assert len(took) == 60
