#!/usr/bin/env python3
"""Usage: browser.py CHROMIUM PROFILE OUT

Drives a headless Chromium over DevTools' pipe. A line of standard input is a JSON array of words, a line of
standard output what came of it, with the page's requests and what it complained of so far:
  ["open", URL, GOAL]       goes there, and waits until the JavaScript GOAL is true: {"is": …}
  ["until", GOAL, SECONDS]  waits, likewise
  ["value", EXPRESSION]
  ["look", NAME, WIDTH, "light" | "dark"]  OUT/NAME.png; the page's text, and the least contrast of any
"""

import base64
import json
import os
import select
import subprocess
import sys
import time

LIMIT = 40

# What the page is, as text and numbers: contrast of each text against what is behind it, by WCAG 2.
LOOK = r"""
(() => {
  const rgb = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c; } return [255, 255, 255, 1]; };
  let worst = 99, where = "";
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const style = getComputedStyle(e), box = e.getBoundingClientRect();
    if (!box.width) continue;
    const a = light(rgb(e instanceof SVGElement ? style.fill : style.color).slice(0, 3)), b = light(behind(e).slice(0, 3));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst) { worst = ratio; where = e.tagName + ": " + e.textContent.slice(0, 40); }
  }
  return { contrast: Math.round(worst * 100) / 100, where, wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    lang: document.documentElement.lang, title: document.title, landmarks: ["header", "main", "footer"].filter((t) => document.querySelector(t)).length,
    text: document.body.innerText };
})()
"""


class Browser:
    def __init__(self, chromium, profile):
        down, to = os.pipe()
        back, up = os.pipe()
        # It reads from descriptor 3 and writes to 4.
        script = f'exec "$@" 3<&{down} 4>&{up}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "chromium", chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
             "--disable-default-apps", "--no-default-browser-check", "--disable-features=Translate,OptimizationHints,MediaRouter",
             f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            pass_fds=(down, up), stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(down)
        os.close(up)
        self.to, self.back, self.buffer, self.number = to, back, b"", 0
        self.deadline = time.monotonic() + LIMIT
        self.requests, self.errors, self.session = [], [], None
        target = self.ask("Target.getTargets")["targetInfos"]
        page = [t for t in target if t["type"] == "page"][0]["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(domain + ".enable")

    def read(self):
        while b"\0" not in self.buffer:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.back, 1 << 20)
            if not piece:
                raise EOFError("the browser has ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, message):
        method, p = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])
        elif method == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
            self.errors.append(str(p["args"]))
        elif method == "Runtime.exceptionThrown":
            self.errors.append(p["exceptionDetails"].get("exception", {}).get("description", str(p)))
        elif method == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.errors.append(p["entry"]["text"])

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def value(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def until(self, expression, limit=15):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            try:
                if self.value(expression):
                    return True
            except RuntimeError:
                pass  # of a page that is being left
            time.sleep(0.1)
        return False

    def view(self, width, height, scheme):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        time.sleep(0.2)

    def picture(self, path):
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as f:
            f.write(base64.b64decode(shot["data"]))

    def end(self):
        try:
            self.ask("Browser.close")
        except (EOFError, TimeoutError, OSError):
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)


def step(b, out, words):
    """One line of standard input: what is to be done, and what is answered."""
    if words[0] == "open":
        b.ask("Page.navigate", url=words[1])
        return {"is": b.until(words[2])}
    if words[0] == "until":
        return {"is": b.until(words[1], float(words[2]) if len(words) > 2 else 15)}
    if words[0] == "value":
        return {"is": b.value(words[1])}
    if words[0] == "look":
        b.view(int(words[2]), 900, words[3])
        tall = b.value("document.documentElement.scrollHeight")
        b.view(int(words[2]), min(int(tall), 4000), words[3])
        b.picture(os.path.join(out, words[1] + ".png"))
        return b.value(LOOK)
    raise ValueError(words[0])


def main():
    chromium, profile, out = sys.argv[1:4]
    b = Browser(chromium, profile)
    print(json.dumps({"ready": True}), flush=True)
    try:
        for line in sys.stdin:
            b.deadline = time.monotonic() + LIMIT
            answer = step(b, out, json.loads(line))
            answer.update(requests=sorted(set(b.requests)), errors=b.errors)
            print(json.dumps(answer), flush=True)
    finally:
        b.end()


main()
