"""Pages in a headless Chromium: what they drew, what ran in them, what they said and what they asked the network for."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socketserver
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-sync",
    "--disable-component-update", "--disable-extensions", "--no-first-run", "--no-default-browser-check",
    "--metrics-recording-only", "--disable-features=OptimizationHints,MediaRouter,Translate,DialMediaRouteProvider",
    "--window-size=1300,1000",
)  # fmt: skip
_OWN = re.compile(r"^(https?://)?[\w.-]+\.(google|googleapis|gvt1|gstatic)\.com[:/]")

_REPORTS = "http://reports.invalid/"
_PATIENCE = 100
"""Seconds that pages may take, on a machine that is busy."""

# Stands in each page behind its policy, before its own scripts. `ran` is what hostile text tries to set.
_PROBE = """<script>
{
  const page = "@PAGE@", said = [], blocked = [];
  addEventListener("error", event => said.push(String(event.message || event.target)), true);
  addEventListener("unhandledrejection", event => said.push(String(event.reason)));
  addEventListener("securitypolicyviolation", event => { blocked.push(event.effectiveDirective); report(); });
  for (const how of ["error", "warn"]) console[how] = (...words) => said.push(words.join(" "));
  const texts = css => Array.from(document.querySelectorAll(css), one => one.textContent);
  const tips = () => {
    const shown = [];
    for (const group of document.querySelectorAll("svg g[class*=_marks]"))
      for (const mark of Array.from(group.children).slice(0, 40)) {
        const box = mark.getBoundingClientRect(), how = {bubbles: true, view: window, clientX: box.x, clientY: box.y};
        for (const kind of ["pointerover", "pointermove", "mouseover", "mousemove"])
          mark.dispatchEvent(new (kind.startsWith("p") ? PointerEvent : MouseEvent)(kind, how));
        shown.push(...texts("#vg-tooltip-element td.value"));
      }
    return shown;
  };
  const report = done => {
    const marks = {};
    for (const group of document.querySelectorAll("svg g[class*=_marks]"))
    {
      const name = group.className.baseVal.match(/\\S+_marks/)[0];
      marks[name] = (marks[name] || 0) + group.children.length;
    }
    const shown = tips();
    const odd = "img,iframe,object,embed,link,base,form[action],[onerror],[href^='javascript' i]";
    const scripts = document.scripts.length;
    const alien = Array.from(document.querySelectorAll(odd), one => one.outerHTML.slice(0, 200));
    parent.postMessage({page, done: done === true, said, blocked, marks, shown, alien, ran: window.ran || 0, scripts,
      texts: texts("svg text"),
      loaded: performance.getEntriesByType("resource").map(one => one.name)}, "*");
  };
  const ready = () => document.readyState === "complete" &&
    (document.querySelector("#chart svg") || !document.querySelector("#chart"));
  const wait = left => ready() || !left ? setTimeout(report, 500, true) : setTimeout(wait, 100, left - 1);
  setTimeout(wait, 100, @TRIES@);
}
</script>"""
_FRAMES = f"""<!DOCTYPE html><meta charset="utf-8"><script>
addEventListener("message", event => fetch("{_REPORTS}", {{method: "POST", mode: "no-cors", body: JSON.stringify(event.data)}}));
</script>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What one start of the browser saw."""

    reports: dict[str, dict[str, Any]]
    """Of each page, by its file's name."""
    requests: list[str]
    """Targets that pages asked the network for; the browser's own, of its maker's hosts, are left out."""


class _Proxy(socketserver.ThreadingTCPServer):
    """Takes the pages' reports, notes every other request and answers none."""

    daemon_threads = True

    def __init__(self, pages: set[str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.missing = pages
        self.reports: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.lock = threading.Lock()
        self.done = threading.Event()

    def note(self, target: str, body: bytes) -> None:
        """One request."""
        with self.lock:
            if target != _REPORTS:
                self.requests.append(target)
                return
            report = json.loads(body)
            self.reports[report["page"]] = report
            if report["done"]:
                self.missing.discard(report["page"])
            if not self.missing:
                self.done.set()


class _Handler(socketserver.StreamRequestHandler):
    server: _Proxy

    def handle(self) -> None:
        words = self.rfile.readline(4000).decode("latin-1").split()
        length = 0
        while line := self.rfile.readline(8000).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        if len(words) > 1:
            self.server.note(words[1], self.rfile.read(length))
        self.wfile.write(b"HTTP/1.1 502 None\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def find_browser() -> str | None:
    """Path of a Chromium, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def visit(browser: str, folder: Path, pages: dict[str, str]) -> Visit:
    """Open all pages, by name, at once, each in a frame; every request goes to a proxy that notes it and answers nothing."""
    for name, page in pages.items():
        probe = _PROBE.replace("@PAGE@", name).replace("@TRIES@", str(6 * _PATIENCE if "#chart" in page else 50))
        (folder / name).write_text(re.sub("(?=</head>)", lambda _, probe=probe: probe, page, count=1), encoding="utf-8")
    frames = "".join(f'<iframe src="{name}" width="1200" height="900"></iframe>' for name in pages)
    (folder / "frames.html").write_text(_FRAMES + frames, encoding="utf-8")
    with _Proxy(set(pages)) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        command = [
            browser, *_QUIET, f"--user-data-dir={folder / 'profile'}", f"--proxy-server=http://127.0.0.1:{proxy.server_address[1]}",
            "--proxy-bypass-list=<-loopback>", (folder / "frames.html").as_uri(),
        ]  # fmt: skip
        # A group of its own, since a browser is many processes.
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as process:
            try:
                end = time.monotonic() + _PATIENCE
                while not proxy.done.wait(0.1) and process.poll() is None and time.monotonic() < end:
                    pass
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        proxy.shutdown()
    assert proxy.done.is_set(), f"no report of {', '.join(sorted(proxy.missing))}"
    return Visit(reports=proxy.reports, requests=[target for target in proxy.requests if not _OWN.search(target)])
