"""The page, in a real browser without a screen: sign-in, bills as one types, answers, plots, history, curating."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="the page is driven by selenium")

from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.service import COUNT, RunningService, configured, running

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
HOSTILE = "<img src=x onerror=window.hit=1>"
PATIENCE = 120

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(BROWSER is None or DRIVER is None, reason="there is no chromium with its chromedriver"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "people.csv").write_text("name,town\na,b\n")
    people = '[sources.people]\nfile = "people.csv"\nbudget = 2\n'
    path = configured(folder, sources=people)
    hostile = HOSTILE.replace("=", "")
    path.write_text(path.read_text().replace("with records_at_most", f'with unit = "{hostile}", records_at_most', 1))
    with running(path) as held:
        yield held


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = str(BROWSER)
    for option in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,1600"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=ChromeService(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


class Page:
    """What a person does there."""

    def __init__(self, browser: Chrome, service: RunningService) -> None:
        self.browser, self.service = browser, service

    def see(self, found: Callable[[], Any]) -> Any:
        return WebDriverWait(self.browser, PATIENCE, ignored_exceptions=[Exception]).until(lambda _: found())

    def one(self, selector: str) -> Any:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[Any]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def sign_in(self, token: str) -> None:
        self.browser.get(self.service.address)
        self.browser.execute_script("sessionStorage.clear()")
        self.browser.get(f"{self.service.address}/#")
        self.browser.refresh()
        self.see(lambda: self.one("#token").is_displayed())
        self.browser.get_log("browser")  # the page before may have been about to ask, and had its token taken away
        self.one("#token").send_keys(token, Keys.ENTER)

    def write(self, program: str) -> None:
        self.see(lambda: self.one("#program").is_displayed())
        self.one("#program").clear()
        self.one("#program").send_keys(program)

    def release(self) -> None:
        self.see(lambda: self.one("#release").is_enabled())
        before = len(self.all(".answer"))
        self.one("#release").click()
        self.see(lambda: len(self.all(".answer")) > before)
        self.see(lambda: self.one("#release").is_enabled())

    def check_clean(self) -> None:
        """Nothing of what others wrote ran, and the browser complains of nothing but refused requests."""
        assert self.browser.execute_script("return window.hit") is None
        assert not self.all("img[src=x]")
        logged = self.browser.get_log("browser")
        assert [each for each in logged if "Failed to load resource" not in each["message"]] == []


@pytest.fixture
def page(browser: Chrome, service: RunningService) -> Iterator[Page]:
    held = Page(browser, service)
    browser.set_window_size(1280, 1600)
    yield held
    held.check_clean()


def test_a_wrong_token_is_told_and_forgotten(page: Page) -> None:
    page.sign_in("wpinq_nobody")
    page.see(lambda: page.one("#sign-in-wrong").text == "This token is not known here.")
    assert page.browser.execute_script("return sessionStorage.length + localStorage.length") == 0
    assert not page.one("#ask").is_displayed()


def test_an_analyst_asks_sees_and_looks_back(page: Page) -> None:
    page.sign_in(page.service.admit("alice", "edges=2"))
    page.see(lambda: "2 of 2 left" in page.one("#ask-sources").text)
    assert "source edges(src: int, dst: int)" in page.one("#ask-sources").text
    assert "no budget for it" in page.one("#ask-sources").text  # the other source

    page.write(COUNT.format(name="degrees", epsilon="0.25"))
    page.see(lambda: "0.25 of edges" in page.one("#quote").text)  # while typing: nothing was pressed
    assert "± at 95 %" in page.one("#quote").text
    assert page.one("#release").text == "Release for 0.25 of edges"
    assert (
        page.service.ask(
            "GET", "v1/remaining", page.browser.execute_script("return sessionStorage['wpinq token']")
        ).json()[0]["spent"]
        == "0"
    )

    page.one("#program").send_keys(Keys.END, "\nvar y = edges.Selec(e => 1);")
    page.see(lambda: "did you mean" in page.one("#program-wrong").text)
    assert not page.one("#release").is_enabled()
    page.one("#program-wrong button").click()
    assert page.browser.execute_script(
        "return [document.activeElement.id, document.activeElement.selectionStart > 50]"
    ) == ["program", True]

    page.write(COUNT.format(name="degrees", epsilon="0.25"))
    page.one("#label").send_keys(HOSTILE)
    page.release()
    rows = page.all(".answer tbody tr")
    assert [row.text.split()[0] for row in rows] == ["1", "2", "3"]
    assert [cell.text for cell in page.all(".answer thead th")] == ["key", "estimate", "low", "high", "kind"]
    assert len(page.all(".answer svg .estimate")) == len(page.all(".answer svg .interval")) == 3
    page.see(lambda: "1.75 of 2 left" in page.one("#ask-sources").text)
    assert page.one("#release").text == "Show again, for nothing"

    page.one("#to-history").click()
    page.see(lambda: HOSTILE in page.one("#history-table").text)
    assert "0.25" in page.one("#history-table").text
    page.one("#leave").click()
    page.see(lambda: page.one("#token").is_displayed())
    assert page.browser.execute_script("return sessionStorage.length") == 0
    assert not page.all(".answer")


def test_names_keys_and_programs_are_text(page: Page) -> None:
    page.sign_in(page.service.admit("bob", "people=1", "edges=1"))
    keys = f'"{HOSTILE}", "</textarea><script>window.hit=1</script>", "{{{{7*7}}}}"'
    page.write(f"var towns = people.Select(p => p.town).NoisyCount(0.1, over: [{keys}]);")
    page.release()
    assert len(page.all(".answer tbody tr")) == 3
    assert HOSTILE in page.one(".answer").text
    assert len(page.all(".answer svg .estimate")) == 3  # side by side, for these keys are no numbers
    page.write(f'var x = edges.Select(e => "{HOSTILE}").Nothing();')
    page.see(lambda: "Nothing" in page.one("#program-wrong").text)
    page.write(f"var x = {HOSTILE};")
    page.see(lambda: "onerror" in page.one("#program-wrong").text)


def test_it_works_by_keyboard_and_at_the_width_of_a_phone(page: Page) -> None:
    page.browser.set_window_size(390, 900)
    page.sign_in(page.service.admit("carol", "edges=1"))
    page.see(lambda: page.one("#program").is_displayed())
    page.one("#program").send_keys("var all = edges.Select(e => 0).NoisyCount(0.1, over: [0]);")
    page.see(lambda: page.one("#release").is_enabled())
    page.one("#program").send_keys(Keys.CONTROL, Keys.ENTER)
    page.see(lambda: page.all(".answer"))
    width = page.browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert width[0] <= width[1]
    for field in page.all("input, textarea, select"):
        named = page.browser.execute_script("return arguments[0].labels.length || arguments[0].ariaLabel", field)
        assert named, field.get_attribute("id")


def test_the_curator_lets_in_sets_budgets_and_opens(page: Page) -> None:
    page.sign_in(page.service.admit("curator", curator=True))
    page.see(lambda: page.one("#admit-edges").is_displayed())
    page.one("#admit-name").send_keys("dora")
    page.one("#admit-edges").send_keys("0.5", Keys.ENTER)
    page.see(lambda: page.one(".token").text.startswith("wpinq_"))
    token = page.one(".token").text
    assert page.service.ask("GET", "v1/remaining", token).json()[0]["budget"] == "0.5"
    field = page.see(lambda: page.one('input[aria-label="budget of dora for edges"]'))
    field.clear()
    field.send_keys("0.75", Keys.ENTER)
    page.see(lambda: page.service.ask("GET", "v1/remaining", token).json()[0]["budget"] == "0.75")

    from wpinq.kernel.ledger.ledger import Ledger

    with Ledger(page.service.folder / "ledger.db", create=False) as ledger:
        ledger.suspend(["edges"])
    page.browser.refresh()
    page.see(lambda: page.one("#to-budgets").is_displayed())
    page.one("#to-budgets").click()
    page.see(lambda: "Suspended: " in page.one("#budget-sources").text)
    next(button for button in page.all("#budget-sources button") if button.text == "Resume edges").click()
    page.see(lambda: "Suspended: " not in page.one("#budget-sources").text)
    page.one("#budget-edges").clear()
    page.one("#budget-edges").send_keys("12", Keys.ENTER)
    page.see(lambda: "of 12" in page.one("#budget-sources").text)
    page.one("#to-history").click()
    page.see(lambda: "set budget" in page.one("#history-table").text)


def test_the_page_is_all_its_own() -> None:
    """No address of others, no inline script or style, which the policy would refuse."""
    folder = Path(__file__).resolve().parents[2] / "wpinq" / "service" / "page"
    for path in folder.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text and "https://" not in text, path
        assert "innerHTML" not in text and "outerHTML" not in text and "insertAdjacentHTML" not in text, path
        assert " style=" not in text and "onclick=" not in text, path
