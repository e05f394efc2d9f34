"""A service that predicts: ``python examples/service/service.py model.km --port 8000``.

``model.km`` is what ``kernelmetric fit --out`` or ``kernelmetric.save`` wrote: a classifier of a
table. The service needs the standard library, pandas and kernelmetric. It answers

    POST /predict   {"rows": [{"visits": 3, "plan": "basic", ...}]}: a class, the probability of
                    each class and the novelty of every row
    GET /health     whether it is ready, and for what

A request that cannot be answered is refused in a sentence: status 400, {"error": "..."}.

Requests that arrive while the model is busy wait, and are then predicted together: a table of
fifty rows takes hardly longer than one row.
"""

import argparse
import json
import queue
import threading
import warnings
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
from threadpoolctl import ThreadpoolController

from kernelmetric import __version__, load

MOST_BYTES = 1_000_000
MOST_ROWS = 1_000  # of a request, and of the requests that are predicted together


class RefusedError(ValueError):
    """A request that cannot be answered, with the reason in a sentence."""


class Model:
    """A saved classifier, and the columns that it expects."""

    def __init__(self, path):
        model = load(path)
        steps = getattr(model, "named_steps", {})
        self.encoder = steps.get("table")  # of what the command line wrote: its cells are text
        self.predictor = steps.get("predictor", model)
        if not hasattr(self.predictor, "predict_proba"):
            raise SystemExit(f"Got {path}, which predicts no classes: try one with --label.")
        used = self.encoder.used if self.encoder else self.predictor.feature_names_in_
        self.columns = [str(name) for name in used]
        self.threads = ThreadpoolController()  # found once: looking for libraries takes long

    def frame_of(self, rows):
        """The rows of a request as a data frame of the columns that the model uses."""
        for number, row in enumerate(rows):
            missing = [name for name in self.columns if name not in row]
            if missing:
                raise RefusedError(f"Row {number} lacks the column {missing[0]!r}: null is a gap.")
        cells = [[row[name] for name in self.columns] for row in rows]
        if self.encoder is not None:
            cells = [["" if cell is None else str(cell) for cell in row] for row in cells]
        return pd.DataFrame(cells, columns=self.columns)

    def predict(self, rows):
        """The answers to some rows; raises ``RefusedError`` with a sentence."""
        frame = self.frame_of(rows)
        try:
            with warnings.catch_warnings(), self.threads.limit(limits=1):
                warnings.simplefilter("ignore")  # names never seen count as "(other)"
                X = frame if self.encoder is None else self.encoder.transform(frame)
                chances = self.predictor.predict_proba(X)
                novelty = -self.predictor.score_samples(X)
        except (ValueError, TypeError) as error:
            raise RefusedError(str(error)) from error
        names = [str(name) for name in self.predictor.classes_]
        return [
            {
                "class": names[chance.argmax()],
                "probabilities": dict(zip(names, map(float, chance), strict=True)),
                "novelty": float(new),
            }
            for chance, new in zip(chances, novelty, strict=True)
        ]


class Together:
    """One thread that predicts what is waiting, all of it at once."""

    def __init__(self, model):
        self.model = model
        self.waiting = queue.Queue()
        threading.Thread(target=self._serve, daemon=True).start()

    def predict(self, rows):
        """Wait for the answers to some rows."""
        answer = Future()
        self.waiting.put((rows, answer))
        return answer.result()

    def _serve(self):
        while True:
            batch = [self.waiting.get()]
            size = len(batch[0][0])
            while size < MOST_ROWS and not self.waiting.empty():
                batch.append(self.waiting.get())
                size += len(batch[-1][0])
            self._answer(batch)

    def _answer(self, batch):
        try:
            found = self.model.predict([row for rows, _ in batch for row in rows])
        except Exception as error:  # whatever it is, a client waits for it
            if len(batch) == 1:
                batch[0][1].set_exception(error)
            else:  # one bad request must not spoil the others
                for one in batch:
                    self._answer([one])
            return
        for rows, answer in batch:
            answer.set_result(found[: len(rows)])
            found = found[len(rows) :]


def rows_of(body):
    """The rows of a request."""
    try:
        request = json.loads(body)
    except ValueError as error:
        raise RefusedError(f"The body is not JSON: {error}.") from error
    rows = request.get("rows") if isinstance(request, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise RefusedError('Expected {"rows": [{"column": value, ...}, ...]} with a row or more.')
    if len(rows) > MOST_ROWS:
        raise RefusedError(f"Got {len(rows):,} rows, but at most {MOST_ROWS:,} go into a request.")
    return rows


def make_server(path, port=8000, host="127.0.0.1"):
    """A server that predicts by the model of a file; ``serve_forever`` runs it."""
    model = Model(path)
    together = Together(model)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # a client may ask again on the same connection
        timeout = 60

        def do_GET(self):
            """Say whether the service is ready."""
            if self.path == "/health":
                self.answer(200, {"status": "ready", "version": __version__, "columns": columns})
            else:
                self.answer(404, {"error": "There are POST /predict and GET /health."})

        def do_POST(self):
            """Predict the rows of the body."""
            size = self.headers.get("Content-Length", "")
            if not size.isdigit() or int(size) > MOST_BYTES:
                self.close_connection = True  # what was sent is not read
                reason = f"Expected a Content-Length of at most {MOST_BYTES:,} bytes."
                self.answer(400, {"error": reason})
                return
            body = self.rfile.read(int(size))
            if self.path != "/predict":
                self.answer(404, {"error": "There are POST /predict and GET /health."})
                return
            try:
                self.answer(200, {"predictions": together.predict(rows_of(body))})
            except RefusedError as error:
                self.answer(400, {"error": str(error)})
            except Exception:
                self.answer(500, {"error": "The model failed; the log says more."})
                raise

        def answer(self, status, content):
            """Send a status and JSON."""
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            """Say nothing of requests that are answered."""

    columns = model.columns

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256  # clients that may knock at the same moment

    return Server((host, port), Handler)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--host", default="127.0.0.1")
    given = parser.parse_args()
    server = make_server(given.model, given.port, given.host)
    print(f"Ready on http://{given.host}:{server.server_port}/predict", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()
