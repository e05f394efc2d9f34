"""The report page in a real browser: it renders, answers hover and click, and complains of nothing.

Chromium is driven by its DevTools protocol over two pipes, which needs no other package.
"""

import base64
import json
import os
import shutil
import subprocess
import time

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from kernelmetric import (
    DNE,
    LDA,
    MLKR,
    NCA,
    KernelAlignment,
    Kernelized,
    MetricClassifier,
    Pairs,
)
from kernelmetric.datasets import make_records
from kernelmetric.evaluation import ClassScores, holdout
from kernelmetric.kernels import Convolutions
from kernelmetric.linkage import RecordLinker
from kernelmetric.report import link_page, report_page

pytestmark = pytest.mark.browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new --remote-debugging-pipe --no-first-run --disable-gpu --hide-scrollbars "
    "--no-sandbox --disable-dev-shm-usage --disable-background-networking about:blank"
)
LABEL = 'barolo </script><b>"&'  # a class name that a careless page would trip over


class Browser:
    """One tab of a headless Chromium."""

    def __init__(self, program, folder):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        command = f'exec "$0" --user-data-dir="$1" {FLAGS} 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, str(folder)],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._buffer, self._session, self.events = 0, b"", {}, []
        (page,) = [t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        attached = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **self._session}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def _next(self):
        while b"\0" not in self._buffer:
            chunk = os.read(self._read, 1 << 20)
            assert chunk, "the browser ended"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def run(self, script):
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, path, *, width=1280, height=900, dark=False):
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        self.events.clear()
        self.send("Page.navigate", url=path.as_uri())
        self.wait_for("document.documentElement?.dataset.ready === 'true'")

    def wait_for(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never came true: {condition}"
            time.sleep(0.05)

    def mouse(self, kind, x, y):
        click = {"button": "left", "clickCount": 1} if kind != "mouseMoved" else {}
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **click)

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y)

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def screenshot(self, **options):
        return base64.b64decode(
            self.send("Page.captureScreenshot", format="png", **options)["data"]
        )

    def complaints(self):
        bad = []
        for event in self.events:
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                bad.append(params["exceptionDetails"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled":
                bad.append(str(params["args"]))
            elif event["method"] == "Log.entryAdded":
                bad.append(params["entry"]["text"])
        return bad

    def requests(self):
        sent = [e["params"]["request"]["url"] for e in self.events if "request" in e["params"]]
        return [url for url in sent if not url.startswith(("file:", "data:"))]

    def close(self):
        self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._write)
        os.close(self._read)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium: `make test-browser` installs it on Debian")
    tab = Browser(program, tmp_path_factory.mktemp("profile"))
    yield tab
    tab.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    y = np.array(["aglianico", LABEL, "corvina"])[y]
    train, test = holdout(y)
    metric = Kernelized(NCA(2), kernel=KernelAlignment()).fit(X[train], y[train])
    known = 0.4, LABEL, tuple(sorted(set(y))), ((14, 0, 1), (1, 16, 1), (0, 0, 12))
    text = report_page(
        metric, X[train], y[train], X_test=X[test], y_test=y[test],
        scores={"Euclidean": [0.9], "Kernelized NCA": [0.95], "RBF-SVM, tuned": [0.96]},
        class_scores={
            "Kernelized NCA": ClassScores(0.95, 0.94, 0.99, 0.12, *known),
            "RBF-SVM, tuned": ClassScores(0.96, 0.95, 0.99, np.nan, *known),
        },
        probabilities=MetricClassifier(LDA()).fit(X[train], y[train]).predict_proba(X[test]),
        learned="Kernelized NCA", title="Wine", label="grape", rows=np.r_[train, test],
        shown={"alcohol": X[np.r_[train, test], 0]}, command="kernelmetric fit wine.csv",
    )  # fmt: skip
    path = tmp_path_factory.mktemp("page") / "wine.html"
    path.write_text(text, encoding="utf-8")
    return path


def place_of_a_point(browser, side, point):
    """Pixel of a drawn point."""
    box = browser.run(
        f"(() => {{ const b = document.getElementById('plane-{side}').getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height]; })()"
    )
    left, top, width, height = box
    xy = np.array(
        browser.run(f"JSON.parse(document.getElementById('data').textContent).points.{side}.xy")
    )
    cut = int(0.02 * (len(xy) - 1))
    low, high = np.sort(xy, axis=0)[[cut, -1 - cut]]
    x, y = (xy[point] - (low + high) / 2) * (width / 2 - 16) / (0.65 * (high - low).max())
    x, y = np.clip([width / 2 + x, height / 2 - y], 8, width - 8)
    return left + x, top + y


def test_the_page_renders_and_complains_of_nothing(browser, page):
    browser.open(page)
    assert browser.run("document.querySelectorAll('section').length") >= 6
    assert browser.run("document.querySelector('h1').textContent") == "Wine"
    assert browser.complaints() == []
    assert browser.requests() == []


def test_complaints_and_requests_would_be_heard(browser, page):
    browser.open(page)
    browser.run("console.error('heard'); new Image().src = 'https://example.org/heard.png'")
    browser.wait_for("true")
    assert any("heard" in complaint for complaint in browser.complaints())
    assert any("Content Security Policy" in complaint for complaint in browser.complaints())


@pytest.mark.parametrize("canvas", ["plane-before", "plane-after", "gram-before", "gram-after"])
def test_every_canvas_is_drawn_in_several_colours(browser, page, canvas):
    browser.open(page)
    colours = browser.run(
        f"(() => {{ const c = document.getElementById('{canvas}');"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "const s = new Set(); for (let i = 0; i < d.length; i += 4) "
        "s.add(d[i] + ',' + d[i + 1] + ',' + d[i + 2]); return s.size; })()"
    )
    assert colours > 10


@pytest.mark.parametrize("side", ["before", "after"])
def test_hovering_over_a_point_names_it(browser, page, side):
    browser.open(page)
    browser.run("document.getElementById('map').scrollIntoView({behavior: 'instant'})")
    n_train = browser.run("JSON.parse(document.getElementById('data').textContent).nTrain")
    browser.mouse("mouseMoved", *place_of_a_point(browser, side, n_train + 3))
    tip = browser.run(
        "document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText"
    )
    assert "row " in tip
    assert "grape: " in tip
    browser.mouse("mouseMoved", 2, 2)
    assert browser.run("document.getElementById('tip').hidden")


def test_clicking_a_point_lists_its_neighbours_under_both_metrics(browser, page):
    browser.open(page)
    browser.run("document.getElementById('map').scrollIntoView({behavior: 'instant'})")
    browser.click(*place_of_a_point(browser, "after", 0))
    lists = [
        browser.run(f"document.querySelectorAll('#neighbors-{side} tbody tr').length")
        for side in ("before", "after")
    ]
    assert lists == [6, 6]
    assert "alcohol" in browser.run("document.getElementById('picked').innerText")
    assert browser.complaints() == []


def test_two_points_clicked_one_after_the_other_are_compared(browser, page):
    browser.open(page)
    browser.run("document.getElementById('map').scrollIntoView({behavior: 'instant'})")
    data = "JSON.parse(document.getElementById('data').textContent)"
    chosen = browser.run(f"{data}.pairs.points")
    rows = browser.run(f"{data}.points.rows")
    browser.click(*place_of_a_point(browser, "after", chosen[0]))
    assert not browser.run("document.getElementById('pair')")
    first = browser.run("document.getElementById('picked').innerText").split(",")[0]
    second = next(i for i in chosen if f"row {rows[i]}" != first)
    browser.click(*place_of_a_point(browser, "before", second))
    said = browser.run("document.getElementById('pair').innerText")
    assert first in said
    assert "distance" in said
    assert browser.run("document.querySelectorAll('#pair tbody tr').length") >= 1
    browser.key("Escape")
    assert browser.complaints() == []


def test_a_page_of_numbers_renders_and_leads_to_its_points(browser, tmp_path):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((120, 4))
    y = X[:, 0] + 0.1 * rng.standard_normal(120)
    train, test = holdout(y, regression=True)
    metric = MLKR().fit(X[train], y[train])
    path = tmp_path / "numbers.html"
    held = {"X_test": X[test], "y_test": y[test]}
    path.write_text(report_page(metric, X[train], y[train], **held, regression=True), "utf-8")
    browser.open(path, width=800)
    assert browser.run("document.querySelectorAll('#numbers circle').length") == len(test)
    wanted = browser.run(
        "(() => { const r = document.querySelector('#numbers tr[data-point]');"
        "r.click(); return r.cells[0].textContent; })()"
    )
    assert wanted in browser.run("document.getElementById('picked').innerText")
    assert browser.run("document.documentElement.scrollWidth") <= 800
    assert browser.complaints() == []


def test_neighbours_of_a_series_are_drawn(browser, tmp_path):
    t, rng = np.arange(30), np.random.RandomState(0)
    series = [np.sin((0.4 + 0.5 * (i % 2)) * t + rng.uniform(0, 6)) for i in range(24)]
    metric = Kernelized(LDA(), kernel=Convolutions(84)).fit(series, np.arange(24) % 2)
    path = tmp_path / "series.html"
    path.write_text(report_page(metric, series, np.arange(24) % 2), encoding="utf-8")
    browser.open(path)
    browser.run("document.getElementById('plane-after').focus()")
    browser.key("ArrowRight")
    browser.wait_for("document.querySelectorAll('#picked img.drawn').length === 13")
    browser.wait_for("[...document.querySelectorAll('img.drawn')].every((i) => i.naturalWidth > 0)")
    assert browser.run("document.documentElement.scrollWidth") <= 1280
    assert browser.complaints() == []
    assert browser.requests() == []


def test_the_page_of_links_fits_narrow_screens_and_the_dark(browser, tmp_path):
    pytest.importorskip("rapidfuzz", reason="rapidfuzz comes with the extra `linkage`")
    records, _ = make_records(60, random_state=0)
    linker = RecordLinker().fit(records)
    path = tmp_path / "links.html"
    path.write_text(link_page(linker, linker.links(), records), "utf-8")
    for width, dark in ((1280, False), (390, True)):
        browser.open(path, width=width, dark=dark)
        assert browser.run("document.documentElement.scrollWidth") <= width
        paper = browser.run("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(20, 23, 28)" if dark else "rgb(251, 250, 248)")
    bars = browser.run("[...document.querySelectorAll('td.fall .share')].map(b => b.offsetWidth)")
    assert max(bars) > 20
    assert browser.complaints() == []
    assert browser.requests() == []


def test_arrow_keys_walk_through_the_points_and_escape_ends_the_walk(browser, page):
    browser.open(page)
    browser.run("document.getElementById('plane-before').focus()")
    browser.key("ArrowRight")
    assert browser.run("document.querySelectorAll('#neighbors-after tbody tr').length") == 6
    browser.key("Escape")
    assert "Click a point" in browser.run("document.getElementById('picked').innerText")


def test_a_hard_row_leads_to_its_point(browser, page):
    browser.open(page)
    wanted = browser.run(
        "(() => { const r = document.querySelector('table.hard tr[data-point]');"
        "if (!r) return null; r.click(); return r.cells[0].textContent; })()"
    )
    if wanted is None:
        pytest.skip("this metric made no error")
    assert browser.run("document.getElementById('picked').innerText").startswith(wanted)


def test_a_class_can_be_hidden(browser, page):
    def plane():
        return browser.run("document.getElementById('plane-after').toDataURL()")

    browser.open(page)
    before = plane()
    browser.run("document.querySelector('#legend button').click()")
    assert browser.run("document.querySelector('#legend button').ariaPressed") == "false"
    assert plane() != before
    browser.run("document.querySelector('#legend button').click()")
    assert plane() == before


def test_the_page_follows_the_system_into_the_dark_and_the_button_out_of_it(browser, page):
    def paper():
        return browser.run("getComputedStyle(document.body).backgroundColor")

    browser.open(page, dark=True)
    assert paper() == "rgb(20, 23, 28)"
    browser.run("document.getElementById('theme').click()")
    assert paper() == "rgb(251, 250, 248)"
    browser.open(page)
    assert paper() == "rgb(251, 250, 248)"
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_nothing_runs_out_of_the_window(browser, page, width):
    browser.open(page, width=width)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_the_table_of_scores_fits_a_telephone(browser, page):
    browser.open(page, width=390)
    sizes = "(() => { const t = document.querySelector('#content section .scroll');"
    inner, outer = browser.run(sizes + "return [t.scrollWidth, t.clientWidth]; })()")
    assert inner <= outer


def test_a_class_name_with_markup_stays_text(browser, page):
    browser.open(page)
    texts = browser.run("[...document.querySelectorAll('#legend button')].map((b) => b.innerText)")
    assert LABEL in texts
    assert browser.run("document.querySelectorAll('main b b').length") == 0


def test_a_page_without_labels_has_pairs_and_no_legend(browser, tmp_path):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    metric = DNE(2).fit(X, y)
    pairs = Pairs.from_labels(y, per_point=1, random_state=0)
    path = tmp_path / "pairs.html"
    path.write_text(report_page(metric, X, pairs=pairs), encoding="utf-8")
    browser.open(path)
    assert "The hardest pairs" in browser.run("document.body.innerText")
    assert browser.run("document.querySelectorAll('#legend button').length") == 0
    assert browser.complaints() == []
