"""Ask the service from many clients at once: ``python examples/service/clients.py new.csv``.

Every client is a thread with a connection of its own. It sends one row of the table after the
other and waits for each answer. The script prints how many requests a second were answered, and
the median and the 99th percentile of the time that a client waited.
"""

import argparse
import csv
import json
import statistics
import threading
import time
from http.client import HTTPConnection
from pathlib import Path


def ask(connection, rows):
    """The status and the answer to some rows."""
    body = json.dumps({"rows": rows})
    connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def run_clients(host, port, rows, n_clients=100, n_requests=20):
    """Seconds that each request took, and those of all of them together."""
    took, lock = [], threading.Lock()
    begin = threading.Barrier(n_clients + 1)

    def client(number):
        connection = HTTPConnection(host, port, timeout=120)
        connection.connect()
        mine = []
        begin.wait()
        for i in range(n_requests):
            row = rows[(number + i) % len(rows)]
            start = time.perf_counter()
            status, answer = ask(connection, [row])
            mine.append(time.perf_counter() - start)
            if status != 200:
                raise RuntimeError(answer["error"])
        connection.close()
        with lock:
            took.extend(mine)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(n_clients)]
    for thread in threads:
        thread.start()
    begin.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return took, time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--requests", type=int, default=20, help="of each client")
    given = parser.parse_args()
    with given.table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    took, whole = run_clients(given.host, given.port, rows, given.clients, given.requests)
    p50, p99 = statistics.median(took), statistics.quantiles(took, n=100)[98]
    print(f"{given.clients} clients, {len(took):,} requests: {len(took) / whole:.0f} a second")
    print(f"p50 {1000 * p50:.0f} ms, p99 {1000 * p99:.0f} ms, longest {1000 * max(took):.0f} ms")
