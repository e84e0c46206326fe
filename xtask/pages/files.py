"""Opens pages that commands write (`--html`) in Chromium: `cargo xtask pages` gives it their files.

Arguments: the file axe.min.js of the package axe-core, a folder for screenshots or `-`, and the pages.
"""

import json
import pathlib
import sys

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

AXE, SHOTS, *PAGES = sys.argv[1:]
WRONG = []


def check(name, holds, more=""):
    print(("ok    " if holds else "WRONG ") + name, more if not holds else "", flush=True)
    if not holds:
        WRONG.append(name)


def driver():
    options = webdriver.ChromeOptions()
    for flag in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,900"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    found.set_page_load_timeout(120)
    found.set_script_timeout(120)
    return found


def look(browser, path):
    name = pathlib.Path(path).name
    for is_dark in [False, True]:
        features = [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(pathlib.Path(path).resolve().as_uri())
        loaded = browser.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")
        check(f"{name}: nothing is loaded", loaded == [], loaded)
        browser.execute_script(pathlib.Path(AXE).read_text())
        found = browser.execute_async_script("const done = arguments[0]; axe.run().then(done)")["violations"]
        words = json.dumps([(one["id"], one["impact"], [node["html"][:90] for node in one["nodes"][:2]]) for one in found])
        check(f"{name}: axe, {'dark' if is_dark else 'light'}", found == [], words)
        if SHOTS != "-":
            browser.save_screenshot(str(pathlib.Path(SHOTS) / f"{name}-{'dark' if is_dark else 'light'}.png"))
    broken = browser.execute_script(
        "return [...document.querySelectorAll('a[href^=\"#\"]')].filter((a) => !document.getElementById(a.hash.slice(1))).length"
    )
    check(f"{name}: every link has its target", broken == 0, broken)
    for link in browser.find_elements(By.CSS_SELECTOR, "a[href^='#']")[:1]:
        link.click()
        seen = browser.execute_script(
            "const box = document.querySelector(location.hash).getBoundingClientRect(); return box.top >= 0 && box.top < innerHeight"
        )
        check(f"{name}: a link leads to its place", seen)
    metrics = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    check(f"{name}: it fits into 360 pixels", wide <= 360, wide)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    log = [entry["message"] for entry in browser.get_log("browser") if "favicon" not in entry["message"]]
    check(f"{name}: the console is empty", log == [], log)


browser = driver()
try:
    for page in PAGES:
        look(browser, page)
finally:
    browser.quit()
print(f"{len(WRONG)} checks failed" if WRONG else "all checks passed")
sys.exit(bool(WRONG))
