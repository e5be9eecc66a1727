"""The page in a real Chromium: it draws, sorts, filters, switches, and no stranger's text comes to life.

`make browser-test` runs these. Screenshots go to `build/screenshots/`.
"""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from graphnet.evaluate.records import Environment, Floor, Result
from graphnet.report.html import page
from graphnet.report.html.strings import texts
from graphnet.report.html.text import visible
from tests.analyze import raced
from tests.report.html.samples import HOSTILE

pytestmark = pytest.mark.browser
SHOTS = Path(__file__).parents[3] / "build" / "screenshots"
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,900", "--hide-scrollbars")
ROOFLINE = {
    "data": [{"type": "scatter", "mode": "markers", "name": "jax", "x": [1.0], "y": [2.0], "text": [HOSTILE]}],
    "layout": {"xaxis": {"type": "log", "title": {"text": "FLOP / byte"}}, "yaxis": {"type": "log"}},
}


def program(*names: str) -> str:
    """Where a program is; fails, saying how to get it, where it is absent."""
    found = next(filter(None, map(shutil.which, names)), None)
    if not found:
        pytest.fail(f"no {names[0]} on this machine: apt-get install -y chromium chromium-driver")
    return str(found)


class Page:
    """One tab with the page open in it."""

    def __init__(self, driver: webdriver.Chrome, address: str) -> None:
        self.driver, self.address = driver, address

    def open(self, place: str = "") -> None:
        """Open anew, at an address within the page."""
        self.driver.get("about:blank")
        self.driver.get(self.address + place)
        self.settle()

    def settle(self) -> None:
        """Wait until the last chart is drawn."""
        drawn = "return document.documentElement.dataset.charts === 'drawn'"
        WebDriverWait(self.driver, 60).until(lambda driver: driver.execute_script(drawn))

    def run(self, script: str, *arguments: object) -> Any:
        """Result of a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def click(self, selector: str) -> None:
        """Click an element, wherever the page is scrolled to."""
        self.run("arguments[0].click()", self.driver.find_element(By.CSS_SELECTOR, selector))
        self.settle()

    def texts(self, selector: str) -> list[str]:
        """Text of every such element that is shown."""
        found = "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText.trim())"
        return [str(text) for text in self.run(found, selector)]

    def graphs(self) -> list[str]:
        """Graphs in the table."""
        return self.texts("#heat tbody th")

    def choose(self, selector: str, value: str) -> None:
        """Choose an option."""
        Select(self.driver.find_element(By.CSS_SELECTOR, selector)).select_by_value(value)
        self.settle()

    def shoot(self, name: str, width: int = 1280, *, scale: int = 1, media: str = "screen") -> None:
        """Keep a picture of the whole page, after a check that it does not scroll sideways."""
        self.command("Emulation.setEmulatedMedia", media=media)
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=scale, mobile=scale > 1
        )
        time.sleep(0.3)
        self.settle()
        assert self.run("return document.documentElement.scrollWidth") <= width
        height = self.run("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        SHOTS.mkdir(parents=True, exist_ok=True)
        (SHOTS / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def command(self, name: str, **arguments: object) -> Any:
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, arguments)


@pytest.fixture(scope="module")
def driver() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium", "chromium-browser", "google-chrome")
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(program("chromedriver")))
    yield chrome
    chrome.quit()


@pytest.fixture
def opened(
    driver: webdriver.Chrome, results: list[Result], environment: Environment, tmp_path: Path
) -> Iterator[Page]:  # fmt: skip
    file = tmp_path / "report.html"
    page.write(page.build(results, [environment], figures=[{"roofline": ROOFLINE}, {}]), file)
    tab = Page(driver, file.as_uri())
    tab.open()
    tab.run("localStorage.clear()")
    yield tab
    assert tab.run("return performance.getEntriesByType('resource').map((entry) => entry.name)") == []
    assert tab.run("return window.hacked") is None
    log: Any = driver
    assert log.get_log("browser") == []
    tab.command("Emulation.setEmulatedMedia", media="screen")
    tab.command("Emulation.clearDeviceMetricsOverride")


def test_draws_every_section(opened: Page) -> None:
    sections = opened.run("return [...document.querySelectorAll('#overview > section')].map((e) => e.id)")
    assert sections == ["summary", "speedup", "scores", "table", "roofline", "compile", "memory"]
    assert opened.run("return [...document.querySelectorAll('.chart .main-svg')].length >= 5")
    assert opened.texts("#summary .figures b") == ["3", "3", "8 / 9", "1"]
    assert opened.run("return document.querySelector('#scores-chart').data.filter((t) => t.name).length") == 3


def test_filters_change_the_rows(opened: Page) -> None:
    assert opened.graphs() == ["beta", visible(HOSTILE), "alpha"]
    opened.choose("#filter-subset", "audio")
    assert opened.graphs() == ["beta"]
    opened.click("#reset")
    opened.choose("#filter-verdict", "any")
    assert opened.graphs() == ["beta"]
    opened.click("#reset")
    opened.driver.find_element(By.ID, "filter-name").send_keys("ALPH")
    assert opened.graphs() == ["alpha"]
    assert opened.texts("#count") == ["1 of 3 graphs"]
    opened.click("#reset")
    assert len(opened.graphs()) == 3


def test_sorts_both_ways_with_failures_last(opened: Page) -> None:
    opened.click("[data-sort='1']")  # jax: 3, 1, 2 times as fast
    assert opened.graphs() == ["beta", "alpha", visible(HOSTILE)]
    opened.click("[data-sort='1']")
    assert opened.graphs() == [visible(HOSTILE), "alpha", "beta"]
    opened.click("[data-sort='2']")  # hostile compiler: crashed, 2, 0.5
    assert opened.graphs() == [visible(HOSTILE), "alpha", "beta"]
    order = "return [...document.querySelectorAll('#heat th[aria-sort]')].map((e) => e.getAttribute('aria-sort'))"
    assert opened.run(order) == ["none", "none", "none", "descending"]


def test_shows_latency_or_verdict(opened: Page) -> None:
    row = "#heat tbody tr:first-child td"
    assert opened.texts(row) == ["1.00×", "3.00×", "✕ crashed"]
    opened.choose("#filter-show", "latency")
    assert opened.texts(row)[:2] == ["9.00", "3.00"]
    opened.choose("#filter-show", "verdict")
    assert opened.texts(row) == ["✓ ok", "✓ ok", "✕ crashed"]


def test_a_cell_tells_more_by_keyboard(opened: Page) -> None:
    opened.run("document.querySelector('#heat td[tabindex=\"0\"]').focus()")
    opened.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    [told] = opened.texts("#tip")
    assert "beta · jax" in told
    assert "3.00 ms – 3.00 ms" in told
    opened.driver.switch_to.active_element.send_keys(Keys.ENTER)
    opened.settle()
    assert opened.texts("#graph-page h1") == ["beta"]


def test_speedups_have_intervals_and_the_floor_is_told(driver: webdriver.Chrome, tmp_path: Path) -> None:
    drift = [1000.0, 1500.0, 800.0, 2000.0, 900.0, 1200.0, 3000.0, 1100.0]
    results = [raced.result(drift, compiler="torch"), raced.result([us / 1.03 for us in drift])]
    results = [msgspec.structs.replace(one, started="2026-12-02T21:00:00+00:00") for one in results]
    floor = Floor(
        threads=1, pairs=60, spread=0.02, sequential=0.05, median=0.004, p95=0.013, sequential_p95=0.34, covered=0.9,
        compilers=("torch", "jax"),
    )  # fmt: skip
    machine = Environment(
        key="m", cpu_model="c", cpu_count=2, memory_bytes=1, os="Linux", python="3", floors=(floor,)
    )  # fmt: skip
    tab = Page(driver, (tmp_path / "report.html").as_uri())
    page.write(page.build(results, [machine]), tmp_path / "report.html")
    tab.open()
    assert tab.texts("#floor") == [
        "torch, jax against themselves, 60 pairs: median |ratio − 1| 0.4 %, 95th percentile 1.3 %;"
        " one after the other 34 %"
    ]
    assert tab.texts("#heat tbody td") == ["1.00×", "~1.03×"]
    assert tab.run("return document.querySelectorAll('#heat tbody td')[1].style.backgroundColor") == ""
    tab.run("document.querySelectorAll('#heat tbody td')[1].focus()")
    [told] = tab.texts("#tip")
    assert "~1.03× (0.99× – 1.07×), 8 rounds in turns, not resolved" in told
    tab.open("#graph/0/GN-a")
    assert "0.99× – 1.07×" in tab.texts("#graph-latency td")
    page.write(page.build(results), tmp_path / "report.html")
    tab.open()
    assert tab.texts("#floor") == ["not measured: graphnet noise"]
    assert tab.texts("#heat tbody td") == ["1.00×", "1.03×"]


def test_language_and_colours_switch(opened: Page) -> None:
    opened.click("#language")
    assert opened.texts("h1") == [texts("zh")["title"]]
    assert opened.run("return document.documentElement.lang") == "zh-Hans"
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = opened.run(ground)
    opened.click("#theme")
    assert opened.run(ground) != light
    opened.open()
    assert opened.run("return document.documentElement.dataset.theme") == "dark"
    opened.click("#theme")
    assert opened.run(ground) == light


def test_follows_the_system_into_the_dark(opened: Page) -> None:
    opened.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    opened.settle()
    assert opened.run("return document.documentElement.dataset.theme") == "dark"


def test_an_address_opens_a_graph(opened: Page) -> None:
    opened.open("#graph/0/GN-alpha")
    assert opened.texts("#graph-page h1") == ["alpha"]
    assert not opened.run("return document.getElementById('overview').checkVisibility()")
    assert opened.run("return document.querySelector('#operator-chart').data.map((t) => t.name)")[:1] == ["k0"]
    opened.click("#graph-page .pager a")
    assert opened.run("return document.getElementById('overview').checkVisibility()")
    opened.open("#graph/0/absent%")
    assert opened.texts("#graph-page .notice") == [texts("en")["not_found"]]


def test_settings_are_chosen_not_mixed(opened: Page) -> None:
    assert "2 different settings" in opened.texts("#groups-note")[0]
    opened.choose("#group", "1")
    assert opened.graphs() == ["alpha"]
    assert opened.texts("#heat tbody td") == ["1.00×", "3.00×"]


def test_hostile_names_are_text(opened: Page) -> None:
    name = visible(HOSTILE)
    assert name in opened.graphs()
    assert name in opened.texts("#heat thead th button")
    assert opened.run("return document.querySelectorAll('body img, .chart a').length") == 0
    labels = opened.run("return [...document.querySelectorAll('#speedup-chart .ytick text')].map((e) => e.textContent)")
    assert sorted(labels) == [name[:27] + "…", "jax"]
    opened.open(f"#graph/0/{opened.run('return encodeURIComponent(arguments[0])', visible('GN-' + HOSTILE))}")
    assert opened.texts("#graph-page h1") == [name]
    opened.open("#graph/0/GN-alpha")
    opened.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert name in opened.texts("#graph-time details tbody th")
    assert opened.run("return document.querySelectorAll('body img, .chart a').length") == 0


def test_screenshots(opened: Page) -> None:
    opened.shoot("desktop-light")
    opened.shoot("phone", 390, scale=2)
    opened.shoot("print", 1050, media="print")
    opened.command("Emulation.setEmulatedMedia", media="screen")
    opened.click("#theme")
    opened.shoot("desktop-dark")
    opened.shoot("print-from-dark", 1050, media="print")
    assert opened.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    opened.command("Emulation.setEmulatedMedia", media="screen")
    opened.open("#graph/0/GN-alpha")
    opened.shoot("graph-dark")
    opened.shoot("graph-phone", 390, scale=2)
