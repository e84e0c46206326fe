"""Drives a browser through the pages for admins: `cargo xtask pages`.

Arguments: the program `pages` (an example of formwork-gateway), the file axe.min.js of the package axe-core, and a folder for
screenshots or `-`. Needs Chromium and its driver (Debian's packages `chromium` and `chromium-driver`), selenium and Pillow.
"""

import io
import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request

from PIL import Image
from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.ui import Select, WebDriverWait

PROGRAM, AXE, SHOTS = sys.argv[1:4]
DONE = []


def check(name, holds, more=""):
    DONE.append((name, bool(holds)))
    print(("ok    " if holds else "WRONG ") + name, more if not holds else "", flush=True)


def driver(script=True, size=(1200, 900)):
    options = webdriver.ChromeOptions()
    for flag in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"]:
        options.add_argument(flag)
    options.add_argument(f"--window-size={size[0]},{size[1]}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not script:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    found = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    found.set_page_load_timeout(60)
    found.implicitly_wait(5)
    return found


def dark(browser, is_dark):
    value = "dark" if is_dark else "light"
    features = [{"name": "prefers-color-scheme", "value": value}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def narrow(browser, width):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    if width:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    else:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def shoot(browser, name):
    if SHOTS == "-":
        return
    picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    picture.quantize(32).save(pathlib.Path(SHOTS) / f"{name}.png", optimize=True)


def axe(browser, name):
    """Checks accessibility; serious and critical findings count."""
    # The page's policy forbids scripts of others; those of the driver are not the page's.
    browser.execute_script(pathlib.Path(AXE).read_text())
    result = browser.execute_async_script(
        "const done = arguments[0]; axe.run().then(done, (error) => done({violations: [{id: String(error), impact: 'serious', nodes: []}]}))"
    )
    bad = [one for one in result["violations"] if one["impact"] in ("serious", "critical")]
    check(f"axe: {name}", not bad, json.dumps([(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in bad]))


def click(browser, by, what):
    """Clicks on what leads to another page, and waits for that page."""
    old = browser.find_element(By.TAG_NAME, "html")
    browser.find_element(by, what).click()
    WebDriverWait(browser, 30).until(expected_conditions.staleness_of(old))


def login(browser, url, key):
    browser.get(url + "/login")
    browser.find_element(By.NAME, "key").send_keys(key)
    click(browser, By.CSS_SELECTOR, "main button")


def title(browser):
    return browser.find_element(By.TAG_NAME, "h1").text


def alert(browser):
    try:
        return browser.switch_to.alert.text
    except NoAlertPresentException:
        return None


def main():
    folder = tempfile.mkdtemp()
    service = subprocess.Popen([PROGRAM, folder], stdout=subprocess.PIPE, text=True)
    try:
        url, key, patched, hostile = service.stdout.readline().split()
        walk(url, key, patched, hostile, folder)
    finally:
        service.terminate()
    wrong = [name for name, holds in DONE if not holds]
    print(f"{len(DONE) - len(wrong)} passed, {len(wrong)} failed")
    sys.exit(bool(wrong))


def walk(url, key, patched, hostile, folder):
    browser = driver()
    browser.get(url + "/")
    check("a visitor is sent to the login", browser.current_url.endswith("/login"))
    axe(browser, "login")
    login(browser, url, "fw_wrong")
    check("a wrong key is an alert", browser.find_element(By.CSS_SELECTOR, "[role=alert]").text)
    login(browser, url, key)
    check("login", title(browser) == "Overview")
    cookie = browser.get_cookie("formwork-session")
    check("the cookie is HttpOnly and Strict", cookie["httpOnly"] and cookie["sameSite"] == "Strict" and key not in cookie["value"])
    click(browser, By.LINK_TEXT, "30 d")
    check("a period", "aria-current" in browser.page_source and "By day (UTC)" in browser.page_source)
    shoot(browser, "overview")

    body = json.dumps({"model": "main", "messages": [{"role": "user", "content": "ACME GmbH: a bolt"}]}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}", "x-formwork-contract": "invoice"}
    request = urllib.request.Request(url + "/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request) as response:
        live = response.headers["x-formwork-run"]
    # Runs are written in groups, a moment after their response.
    listed = lambda it: (it.get(url + "/runs"), live in it.page_source)[1]
    check("a live run is in the list", WebDriverWait(browser, 15).until(listed))
    click(browser, By.LINK_TEXT, live)
    marks = browser.find_elements(By.CSS_SELECTOR, "mark.violation")
    check("a live run has its violation marked", marks and "name" in marks[0].text, str([mark.text for mark in marks]))
    check("evidence is marked in the request", [mark.text for mark in browser.find_elements(By.CSS_SELECTOR, "mark.evidence")])

    browser.get(url + "/runs")
    browser.find_element(By.NAME, "contract").send_keys("invoice")
    Select(browser.find_element(By.NAME, "retried")).select_by_visible_text("yes")
    click(browser, By.CSS_SELECTOR, "form.filter button")
    rows = browser.find_elements(By.CSS_SELECTOR, "tbody tr")
    check("a filter", rows and all("invoice" in row.text for row in rows) and "retried=yes" in browser.current_url)
    shoot(browser, "runs")
    link = browser.find_element(By.LINK_TEXT, "Export as JSON Lines").get_attribute("href")
    request = urllib.request.Request(link, headers={"cookie": f"{cookie['name']}={cookie['value']}"})
    with urllib.request.urlopen(request) as response:
        lines = [json.loads(line) for line in response.read().splitlines()]
    check("an export has the runs of the filter", lines and all(line["contract"] == "invoice" for line in lines))

    browser.get(f"{url}/runs/{patched}")
    check("a patch is a difference", browser.find_element(By.TAG_NAME, "del").text == '"about 20"' and browser.find_element(By.TAG_NAME, "ins").text == "19.9")
    check("waits are on the time line", "600 ms of waiting" in browser.page_source)
    check("a copy button with the script", any(button.is_displayed() for button in browser.find_elements(By.CSS_SELECTOR, "[data-copy]")))
    click(browser, By.CSS_SELECTOR, "button[value=good]")
    check("feedback", WebDriverWait(browser, 10).until(lambda it: "feedback" in it.find_element(By.CSS_SELECTOR, "main table").text))
    browser.execute_script("document.querySelector('.beside').scrollIntoView()")
    shoot(browser, "run")

    browser.get(url + "/keys")
    browser.find_element(By.NAME, "name").send_keys("alice")
    browser.find_element(By.NAME, "budget").send_keys("2.50")
    click(browser, By.XPATH, "//button[text()='Add']")
    check("a key is added and shown once", browser.find_element(By.ID, "secret").text.startswith("fw_"))
    browser.find_elements(By.NAME, "name")[1].send_keys("alice")
    click(browser, By.XPATH, "//button[text()='Revoke']")
    check("a key is revoked", "was revoked" in browser.find_element(By.CSS_SELECTOR, "[role=status]").text)
    browser.get(url + "/contracts")
    click(browser, By.LINK_TEXT, "invoice")
    check("a contract", "Dialects" in browser.page_source and "Failures by path" in browser.page_source)
    shoot(browser, "contract")

    browser.get(f"{url}/runs/{hostile}")
    check("hostile text stays text", alert(browser) is None and not browser.execute_script("return window.hacked") and "window.hacked" in browser.find_element(By.TAG_NAME, "main").text)

    paths = ["/?days=30", "/runs", f"/runs/{patched}", f"/runs/{hostile}", "/contracts", "/contracts/invoice", "/keys"]
    for is_dark in [False, True]:
        dark(browser, is_dark)
        for width in [0, 360]:
            narrow(browser, width)
            for path in paths:
                browser.get(url + path)
                name = f"{path}{' dark' if is_dark else ''}{' narrow' if width else ''}"
                axe(browser, name)
                if width:
                    over = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
                    check(f"nothing is wider than the screen: {name}", over <= 0, str(over))
            if is_dark and not width:
                browser.get(url + "/?days=30")
                shoot(browser, "overview-dark")
            if width and not is_dark:
                browser.get(f"{url}/runs/{patched}")
                shoot(browser, "run-narrow")
    dark(browser, False)
    narrow(browser, 0)
    log = [line for line in browser.get_log("browser") if line["level"] == "SEVERE" and "favicon" not in line["message"] and "/login" not in line["message"]]
    check("the console has no errors", not log, str(log))

    plain = driver(script=False)
    login(plain, url, key)
    check("login without a script", title(plain) == "Overview")
    plain.get(url + "/runs")
    plain.find_element(By.NAME, "contract").send_keys("person")
    click(plain, By.CSS_SELECTOR, "form.filter button")
    check("a filter without a script", "contract=person" in plain.current_url and plain.find_elements(By.CSS_SELECTOR, "tbody tr"))
    check("no button that needs the script", not any(button.is_displayed() for button in plain.find_elements(By.CSS_SELECTOR, "[data-copy]")))
    click(plain, By.XPATH, "//button[text()='Log out']")
    check("logout without a script", plain.current_url.endswith("/login"))
    plain.quit()

    ledger = sqlite3.connect(f"{folder}/runs.db")
    ledger.execute("UPDATE key SET expires = 1 WHERE name = 'root'")
    ledger.commit()
    ended = lambda it: (it.get(url + "/runs"), it.current_url.endswith("/login"))[1]
    check("an expired session is sent to the login", WebDriverWait(browser, 15).until(ended))
    browser.quit()


main()
