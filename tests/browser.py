"""A real browser for tests: headless Chromium, driven through chromedriver
(WebDriver over HTTP). Nothing that a page asks for may leave the machine."""
import base64
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
SKIPPED = 77
KEYS = {"Escape": "\ue00c", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014",
        "Down": "\ue015", "Enter": "\ue007", "Shift": "\ue008"}
MAX_WAIT_SECONDS = 20
# Drawings are made before the next frame; the second frame comes after them.
WAIT = """
const given = [...arguments], done = given.pop(), most = given.pop(), begin = performance.now();
const look = () => {
  const value = (CONDITION);
  if (value || performance.now() - begin > most) done(value);
  else requestAnimationFrame(look);
};
requestAnimationFrame(() => requestAnimationFrame(look));
"""
PLOT = """
const canvas = document.querySelector(`#timeline-${arguments[0]} .plot`);
canvas.scrollIntoView({block: 'center'});
const box = canvas.getBoundingClientRect();
return [box.left, box.top, ...canvas.dataset.plot.split(' ').map(Number)];
"""


def need():
    """Ends the test if there is no browser: skipped, but failed in CI."""
    for name in ("chromedriver", "chromium"):
        if not shutil.which(name):
            print(f"SKIP: no {name}" if not os.environ.get("CI") else f"FAILED: no {name}")
            sys.exit(1 if os.environ.get("CI") else SKIPPED)


class Browser:
    """with Browser() as browser: browser.open(path)"""

    def __init__(self, width=1280, height=900):
        self.size = (width, height)

    def __enter__(self):
        self.home = tempfile.TemporaryDirectory(prefix="memtrace-browser-")
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env={**os.environ, "HOME": self.home.name})
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                self.driven = http.client.HTTPConnection("127.0.0.1", int(found.group(1)), timeout=600)
                break
        else:
            raise RuntimeError("chromedriver did not start")
        width, height = self.size
        arguments = ["--headless=new", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
                     "--disable-dev-shm-usage", "--disable-background-networking",
                     "--host-resolver-rules=MAP * ~NOTFOUND", f"--window-size={width},{height}",
                     f"--user-data-dir={self.home.name}/profile"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        options = {"args": arguments, "binary": shutil.which("chromium")}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.session = ""
        answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{answer['sessionId']}"
        return self

    def __exit__(self, *_):
        try:
            self.ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            self.home.cleanup()

    def ask(self, method, path, body=None):
        """One command of WebDriver; its value."""
        data = None if body is None else json.dumps(body)
        self.driven.request(method, (self.session or "") + path, data, {"Content-Type": "application/json"})
        answer = self.driven.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {text.decode()[:2000]}")
        return json.loads(text)["value"]

    def open(self, path, state=""):
        """Loads a file again, with this fragment or query after its name."""
        self.ask("POST", "/url", {"url": "about:blank"})
        self.ask("POST", "/url", {"url": f"file://{path}{state}"})

    def run(self, script, *arguments):
        """Runs the body of a function in the page."""
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, condition, *arguments):
        """Waits until the page is drawn and an expression over the list `given` is true. Returns its
        value, which is false after MAX_WAIT_SECONDS."""
        return self.ask("POST", "/execute/async", {
            "script": WAIT.replace("CONDITION", condition),
            "args": [*arguments, 1000 * MAX_WAIT_SECONDS]})

    def plot_point(self, across, down=0.5, device=0, below=0):
        """A pixel of the window: shares of the width and height of the plot of the timeline, and
        pixels below it."""
        self.wait(f"document.querySelector('#timeline-{device} .plot[data-plot]')")
        left, top, x, y, width, height = self.run(PLOT, device)
        return round(left + x + across * width), round(top + y + down * height + below)

    def devtools(self, command, **parameters):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def elements(self, selector):
        found = self.ask("POST", "/elements", {"using": "css selector", "value": selector})
        return [element[ELEMENT] for element in found]

    def rectangle(self, selector):
        """The rectangle of the first such element, in the page; works without scripts."""
        return self.ask("GET", f"/element/{self.elements(selector)[0]}/rect")

    def click(self, selector):
        self.ask("POST", f"/element/{self.elements(selector)[0]}/click", {})

    def keys(self, *keys):
        """Pressed one after the other, wherever the focus is; ("Shift", key) together."""
        actions = []
        for key in keys:
            together = [KEYS.get(each, each) for each in ([key] if isinstance(key, str) else key)]
            actions += [{"type": "keyDown", "value": each} for each in together]
            actions += [{"type": "keyUp", "value": each} for each in reversed(together)]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def act(self, kind, actions, keys=()):
        """Actions of a mouse or a wheel, while keys are down."""
        kinds = {"pointer": {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}},
                 "wheel": {"type": "wheel", "id": "wheel"}}
        pauses = [{"type": "pause"}] * len(actions)
        down = [{"type": "keyDown", "value": KEYS[key]} for key in keys]
        up = [{"type": "keyUp", "value": KEYS[key]} for key in keys]
        still = [{"type": "pause"}] * len(keys)
        self.ask("POST", "/actions", {"actions": [
            {"type": "key", "id": "keys", "actions": down + pauses + up},
            {**kinds[kind], "actions": still + actions + still}]})

    def drag(self, start, end, key=None):
        """From one point of the window to another, as a mouse does."""
        moves = [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}
                 for x, y in (start, ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2), end)]
        self.act("pointer", [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:],
                             {"type": "pointerUp", "button": 0}], [key] if key else [])

    def move(self, point):
        self.act("pointer", [{"type": "pointerMove", "duration": 0, "x": round(point[0]),
                              "y": round(point[1])}])

    def press(self, point, times=1):
        """Clicks with the mouse at a point of the window."""
        self.act("pointer", [{"type": "pointerMove", "duration": 0, "x": round(point[0]),
                              "y": round(point[1])}] +
                 [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}] * times)

    def wheel(self, point, down, right=0):
        self.act("wheel", [{"type": "scroll", "x": round(point[0]), "y": round(point[1]),
                            "deltaX": right, "deltaY": down, "duration": 0, "origin": "viewport"}])

    def touch(self, *moments):
        """Fingers: for each moment the points of all of them; then they leave."""
        for at, points in enumerate(moments):
            self.devtools("Input.dispatchTouchEvent", type="touchMove" if at else "touchStart", touchPoints=[
                {"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)])
        self.devtools("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def pinch(self, middle, begin, end):
        """Two fingers, from this distance to the middle to another one, in pixels."""
        halves = [begin + (end - begin) * at / 8 for at in range(9)]
        self.touch(*([(middle[0] - half, middle[1]), (middle[0] + half, middle[1])] for half in halves))

    def swipe(self, start, end):
        self.touch(*([(start[0] + (end[0] - start[0]) * at / 8, start[1] + (end[1] - start[1]) * at / 8)]
                     for at in range(9)))

    def tap(self, point):
        self.touch([point])

    def complaints(self):
        """What the page wrote to the console since the last question."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})]

    def requests(self):
        """Addresses that the page requested since the last call."""
        found = []
        for entry in self.ask("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def screenshot(self, path, width=1280, height=900):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1, mobile=False)
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def page_screenshot(self, path):
        """All of the page, at the size that the window has."""
        width, height = self.run("""const page = document.documentElement;
            return [page.scrollWidth, page.scrollHeight];""")
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                             clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))


class Checks:
    """Checks of pages in a browser; `folder` is for what they write."""

    def __init__(self, program, folder, browser):
        self.program = program
        self.folder = pathlib.Path(folder)
        self.browser = browser
        self.failures = []

    def expect(self, condition, words):
        if not condition:
            self.failures.append(words)
            print(f"FAILED: {words}")

    def open(self, page, state=""):
        self.browser.open(page, state)
        self.expect(self.browser.run("return document.documentElement.dataset.ready") == "yes",
                    f"{page.parent.name}{state}: the script has run to its end")
        twice = self.browser.run("""const seen = new Set();
            return [...document.querySelectorAll('[id]')].map((each) => each.id)
              .filter((id) => seen.size === seen.add(id).size);""")
        self.expect(not twice, f"{page.parent.name}: ids are unique, not {twice[:3]}")

    def is_quiet(self, what):
        complaints = self.browser.complaints()
        self.expect(not complaints, f"{what}: nothing on the console, not {complaints[:3]}")
        asked = [url for url in self.browser.requests()
                 if not url.startswith(("file:", "about:", "data:", "chrome:"))]
        self.expect(not asked, f"{what}: no request, not {asked[:3]}")
