"""A headless Chromium that notes every console message and every request; skipped where something is not installed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

AXE = Path(os.environ.get("CLOISTER_AXE", "build/npm/node_modules/axe-core/axe.min.js"))
INSTALL = "run .ci/browser, which installs it on Debian"


class Browser:
    """What tests ask of the browser."""

    def __init__(self, driver):
        self.driver = driver

    def show(self, page, *, width=1100, height=900, dark=False):
        """Open a page in a fresh state."""
        self._forget()
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.get(page.as_uri() if isinstance(page, Path) else page)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def find(self, query):
        return self.driver.find_element("css selector", query)

    def find_all(self, query):
        return self.driver.find_elements("css selector", query)

    def read_console(self):
        """Return what was logged: errors of scripts, blocked requests, missing files."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def read_requests(self):
        """Return every URL that was asked for."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def read_paint_s(self):
        """Return when the page was first painted."""
        script = """
            const done = arguments[0], name = "first-contentful-paint";
            const type = "paint", tell = (entries) => { if (entries.length) done(entries[0].startTime); };
            new PerformanceObserver((list) => tell(list.getEntriesByName(name))).observe({type, buffered: true});
        """
        return self.driver.execute_async_script(script) / 1000

    def check_access(self):
        """Return what axe-core finds wrong: rule, and the elements."""
        self.run(AXE.read_text(encoding="utf-8"))
        script = "const done = arguments[0]; axe.run(document).then(found => done(found.violations))"
        found = self.driver.execute_async_script(script)
        return {rule["id"]: [node["html"][:120] for node in rule["nodes"]] for rule in found}

    def _forget(self):
        self.driver.get("about:blank")
        self.read_console()
        self.driver.get_log("performance")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    selenium = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip(f"Chromium and its driver are not installed: {INSTALL}")
    if not AXE.exists():
        pytest.skip(f"axe-core is not installed: {INSTALL}")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-quic",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = selenium.Chrome(options=options, service=selenium.ChromeService(executable_path=driver))
    started.set_script_timeout(60)
    yield Browser(started)
    started.quit()
