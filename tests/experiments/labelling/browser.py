"""Drive Chromium through its driver: the few commands of the WebDriver protocol that the tests need."""

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
ENTER, BACKSPACE = "\ue007", "\ue003"
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic", "--hide-scrollbars"),
)
PATIENCE = 20.0
"""Seconds after which something that a test waits for counts as missing."""


class Browser:
    """One browser; several tabs."""

    def __init__(self, downloads: Path, width: int = 1280, height: int = 900) -> None:
        """Start the driver at a free port and a browser that stores downloads in a directory."""
        self._driver = subprocess.Popen(
            [DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        line = next(line for line in self._driver.stdout if "started successfully on port" in line)
        self._address = f"http://127.0.0.1:{line.split('port ')[1].strip().rstrip('.')}"
        chrome = {
            "binary": CHROMIUM,
            "args": [*FLAGS, f"--window-size={width},{height}"],
            "prefs": {"download.default_directory": str(downloads)},
        }
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        try:
            made = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self._driver.kill()
            raise
        self._address += f"/session/{made['sessionId']}"

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self._send("DELETE", "")
        self._driver.terminate()
        self._driver.wait()
        self._driver.stdout.close()

    def _send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._address + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["value"]

    def go(self, address):
        self._send("POST", "/url", {"url": address})

    def reload(self):
        self._send("POST", "/refresh", {})

    def back(self):
        self._send("POST", "/back", {})

    def address(self):
        return self._send("GET", "/url")

    def run(self, script, *arguments):
        """Return what a script returns that runs in the page."""
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def press(self, keys):
        """Press keys one after the other, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._send("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def press_and_wait(self, keys):
        """Press keys that lead to another page, and wait until it is there."""
        self.run("window.old = true")
        self.press(keys)
        self.wait("return window.old === undefined && document.readyState === 'complete'")

    def click(self, selector):
        found = self._send("POST", "/element", {"using": "css selector", "value": selector})
        self._send("POST", f"/element/{next(iter(found.values()))}/click", {})

    def wait(self, script):
        """Wait until a script returns something true."""
        self.wait_for(lambda: self.run(script))

    def wait_for(self, condition):
        """Wait until a function returns something true."""
        until = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < until, "waited in vain"
            time.sleep(0.02)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText", selector)

    def tabs(self):
        return self._send("GET", "/window/handles")

    def new_tab(self):
        """Open a tab and return its name; `switch` goes to it."""
        return self._send("POST", "/window/new", {"type": "tab"})["handle"]

    def switch(self, tab):
        self._send("POST", "/window", {"handle": tab})

    def close_tab(self):
        self._send("DELETE", "/window")

    def resize(self, width, height, *, phone=False, scale=1):
        """Show the page in a window of this size, and as a phone does if wanted, with so many pixels per unit."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone}
        self.devtools("Emulation.setDeviceMetricsOverride", metrics)
        self.devtools("Emulation.setTouchEmulationEnabled", {"enabled": phone})

    def devtools(self, command, parameters):
        return self._send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def picture(self, path):
        """Store what the window shows."""
        Path(path).write_bytes(base64.b64decode(self._send("GET", "/screenshot")))

    def complaints(self):
        """Return the messages on the console: errors of scripts, and what the security policy blocked."""
        return [entry["message"] for entry in self._send("POST", "/se/log", {"type": "browser"})]
