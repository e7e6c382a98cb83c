"""The page, in a real browser at the widths of a phone and of a screen: each step by what stands there."""

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
PATIENCE = 60

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

    def read(self, selector: str, *words: str) -> None:
        """Wait until an element says some words; the page says nothing that is no text, and fits its window."""
        self.see(lambda: all(each in self.one(selector).text for each in words))
        shown = self.browser.execute_script("return document.body.innerText")
        assert "[object" not in shown, shown
        assert "undefined" not in shown, shown
        width = self.browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert width[0] <= width[1]

    def one(self, selector: str) -> Any:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[Any]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def widen(self, width: int) -> None:
        """Give the window a width; a real one is no narrower than 500 pixels."""
        self.width = width  # of this tab alone
        size = {"width": width, "height": 1600, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def click(self, selector: str, words: str) -> None:
        next(each for each in self.all(selector) if each.text == words).click()

    def sign_in(self, token: str) -> None:
        """In a tab of its own, which has no token: to take one away from a page that loads is a race."""
        self.browser.switch_to.new_window("tab")
        made = self.browser.current_window_handle
        for other in set(self.browser.window_handles) - {made}:
            self.browser.switch_to.window(other)
            self.browser.close()
        self.browser.switch_to.window(made)
        self.widen(self.width)
        self.browser.get(self.service.address)
        self.see(lambda: self.one("#token").is_displayed())
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


@pytest.fixture(params=[390, 1280])
def page(browser: Chrome, service: RunningService, request: pytest.FixtureRequest) -> Iterator[Page]:
    held = Page(browser, service)
    held.widen(request.param)
    yield held
    held.check_clean()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A user of one test at one width."""
    return "user_" + "".join(filter(str.isalnum, request.node.name))[-40:]


def test_an_unknown_token_is_forgotten(page: Page) -> None:
    page.sign_in("wpinq_nobody")
    page.read("#sign-in-wrong", "This token is unknown. Check it, or ask the curator for a new one.")
    assert page.browser.execute_script("return sessionStorage.length + localStorage.length") == 0
    assert not page.one("#query").is_displayed()


def test_an_analyst_asks_sees_and_looks_back(page: Page, name: str) -> None:
    page.sign_in(page.service.admit(name, "edges=2"))
    page.read("#sources", "Your budget: ε 2 of 2 left", "source edges(src: int, dst: int)")
    page.read("#sources", "You have no budget for it: ask the curator.")  # of the other source
    page.read("#name", f"{name}, analyst")

    page.write(COUNT.format(name="degrees", epsilon="0.25"))
    page.read("#quote", "Cost: ε 0.25 of edges", "takes about ", " s, fixed before the data are read")
    page.read("#quote", "ε 2 of 2 left for edges", "these answers at most 1.284 times as likely")
    page.read("#quote", "Expected accuracy", "11.98")
    assert [each.get_attribute("width") for each in page.all("#quote .meter rect")] == ["0", "12.5"]
    page.click("#quote summary", "Bill and plans")
    page.read("#quote", "protects ", "Select(e => e.src)", "Protects ", "Engine: duckdb.")
    assert page.one("#release").text == "Release for ε 0.25 of edges"
    token = page.browser.execute_script("return sessionStorage['wpinq token']")
    assert page.service.ask("GET", "v1/remaining", token).json()[0]["spent"] == "0"

    page.one("#program").send_keys(Keys.END, "\nvar y = edges.Selec(e => 1);")
    page.read("#program-wrong", "did you mean")
    assert not page.one("#release").is_enabled()
    page.one("#program-wrong button").click()
    assert page.browser.execute_script(
        "return [document.activeElement.id, document.activeElement.selectionStart > 50]"
    ) == ["program", True]

    page.write(COUNT.format(name="degrees", epsilon="0.25"))
    page.one("#label").send_keys(HOSTILE)
    page.release()
    page.read(".answer", "degrees", "Each interval has a confidence of 95 %.")
    rows = page.all(".answer tbody tr")
    assert [row.text.split()[0] for row in rows] == ["1", "2", "3"]
    assert [cell.text for cell in page.all(".answer thead th")] == ["key", "estimate", "low", "high"]
    numbers = [cell.text for cell in page.all(".answer td.number")]
    assert all(len(number.strip("-").replace(".", "").lstrip("0")) <= 4 for number in numbers), numbers
    bars = page.all(".answer svg rect.estimate")
    assert len(bars) == len(page.all(".answer svg .interval")) == 3
    assert all(float(bar.get_attribute("height")) > 0 for bar in bars)
    page.read("#sources", "Your budget: ε 1.75 of 2 left")
    page.read("#quote", "Cost: nothing, already paid")
    assert page.one("#release").text == "Release (free)"
    page.one("#fresh").click()
    page.read("#quote", "Cost: ε 0.25 of edges", "ε 1.75 of 2 left for edges")

    page.one("#to-history").click()
    page.read("#history-table", HOSTILE, "0.25", "NoisyCount(0.25)")
    page.one("#leave").click()
    page.see(lambda: page.one("#token").is_displayed())
    assert page.browser.execute_script("return sessionStorage.length") == 0
    assert not page.all(".answer")


def test_what_cannot_be_released_is_said_before(page: Page, name: str) -> None:
    page.sign_in(page.service.admit(name, "edges=0.1"))
    page.write(COUNT.format(name="degrees", epsilon="0.5"))
    page.read("#quote", "Cost: ε 0.5 of edges", "Only 0.1 left for edges: lower epsilon, or ask the curator.")
    page.write("var towns = people.Agg(0.1, records: Count());")
    page.read("#quote", "You have no budget for people: ask the curator.")
    page.write("var all = edges.TriangleCount(0.1);")
    page.read("#quote", "untrusted mode has no TriangleCount: no declaration bounds its running time")
    assert not page.one("#release").is_enabled()


def test_a_select_shows_its_program_and_is_released(page: Page, name: str) -> None:
    pytest.importorskip("sqlglot", reason="SQL needs sqlglot")
    page.sign_in(page.service.admit(name, "edges=1"))
    page.write("SELECT src, COUNT(*) AS n FROM edges WHERE src IN (1, 2) GROUP BY dst")
    page.read("#program-wrong", "line 1, column ", "Go to line 1")
    assert not page.one("#release").is_enabled()
    page.write("SELECT src, COUNT(*) AS n FROM edges WHERE src IN (1, 2) GROUP BY src")
    page.read("#program-wrong", "a released table costs epsilon")
    page.one("#sql-epsilon").send_keys("0.26")
    page.read("#quote", "Cost: ε 0.26 of edges")
    page.click("#quote summary", "Bill and plans")
    page.read("#quote", "The SELECT as a program", 'By("src", keys: [1, 2]')
    page.release()
    page.read(".answer", "sql", "Each interval has a confidence of 95 %.")
    page.read("#sources", "Your budget: ε 0.74 of 1 left")
    page.write(COUNT.format(name="degrees", epsilon="0.25"))
    page.see(lambda: not page.one("#sql-epsilon").is_displayed())


def test_the_guide_lists_steps_and_says_what_epsilon_means(page: Page, name: str) -> None:
    page.sign_in(page.service.admit(name, "edges=1"))
    page.see(lambda: len(page.all("#guide summary")) > 4)
    for summary in page.all(".side summary"):
        summary.click()
    page.read(".side", "ε bounds the information that answers reveal about one protected unit", "73.1 %")
    page.read("#guide", "Join(other, left_key, right_key, [result])", "NoisyCount(epsilon, [over])", "starts_with")
    page.read("#guide", "Mean(column, lower, upper)", "Not released by this service", "TriangleCount")


def test_every_example_can_be_released(page: Page, name: str) -> None:
    page.sign_in(page.service.admit(name, "edges=5", "people=1"))
    page.read("#sources", "Number of records", "Degree distribution", "Records by name")
    for button in page.all(".examples button"):
        button.click()
        page.read("#quote", "Cost: ε 0.1 of ")
        page.see(lambda: page.one("#release").is_enabled())
        assert page.one("#program").get_attribute("value").count("var ") == 1
    page.write("var mine = edges.Agg(0.2, records: Count());")
    page.click(".examples button", "Number of records")
    page.read("#quote", "Cost: ε 0.3 of edges")  # below a program of one's own
    page.release()
    assert "\n" not in page.one(".answer .big").text


def test_names_keys_and_programs_are_text(page: Page, name: str) -> None:
    page.sign_in(page.service.admit(name, "people=1", "edges=1"))
    keys = f'"{HOSTILE}", "</textarea><script>window.hit=1</script>", "{{{{7*7}}}}"'
    page.write(f"var towns = people.Select(p => p.town).NoisyCount(0.1, over: [{keys}]);")
    page.release()
    assert len(page.all(".answer tbody tr")) == 3
    page.read(".answer", HOSTILE)
    assert len(page.all(".answer svg rect.estimate")) == 3  # one below the other, for these keys are no numbers
    page.write(f'var x = edges.Select(e => "{HOSTILE}").Nothing();')
    page.read("#program-wrong", "Nothing")
    page.write(f"var x = {HOSTILE};")
    page.read("#program-wrong", "onerror")


def test_it_works_by_keyboard(page: Page, name: str) -> None:
    page.sign_in(page.service.admit(name, "edges=1"))
    page.see(lambda: page.one("#program").is_displayed())
    page.one("#program").send_keys("var all = edges.Select(e => 0).NoisyCount(0.1, over: [0]);")
    page.see(lambda: page.one("#release").is_enabled())
    page.one("#program").send_keys(Keys.CONTROL, Keys.ENTER)
    page.see(lambda: page.all(".answer"))
    for field in page.all("input, textarea, select"):
        named = page.browser.execute_script("return arguments[0].labels.length || arguments[0].ariaLabel", field)
        assert named, field.get_attribute("id")


def test_the_curator_adds_users_sets_budgets_and_resumes(page: Page, name: str) -> None:
    page.sign_in(page.service.admit(name, curator=True))
    page.see(lambda: page.one("#admit-edges").is_displayed())
    analyst = f"a{name}"
    page.one("#admit-name").send_keys(analyst)
    page.one("#admit-edges").send_keys("0.5", Keys.ENTER)
    page.see(lambda: page.one(".token").text.startswith("wpinq_"))
    page.read("#new-token", f"Token of {analyst}", "It is shown only once. Send it over a private channel.")
    page.read("#users-table", f"Revoke access of {analyst}", "Token does not expire")
    token = page.one(".token").text
    assert page.service.ask("GET", "v1/remaining", token).json()[0]["budget"] == "0.5"
    field = page.see(lambda: page.one(f'input[aria-label="budget of {analyst} for edges"]'))
    field.clear()
    field.send_keys("0.75", Keys.ENTER)
    page.see(lambda: page.service.ask("GET", "v1/remaining", token).json()[0]["budget"] == "0.75")

    from wpinq.kernel.ledger.ledger import Ledger

    with Ledger(page.service.folder / "ledger.db", create=False) as ledger:
        ledger.suspend(["edges"])
    page.browser.refresh()
    page.see(lambda: page.one("#to-budgets").is_displayed())
    page.one("#to-budgets").click()
    page.read("#budget-sources", "Suspended: an evaluation failed.")
    page.click("#budget-sources button", "Resume edges")
    page.see(lambda: "Suspended: " not in page.one("#budget-sources").text)
    page.read("#budget-sources", "Open to analysts.")
    page.one("#budget-edges").clear()
    page.one("#budget-edges").send_keys("12", Keys.ENTER)
    page.read("#budget-sources", "of 12 spent")
    page.one("#to-history").click()
    page.read("#history-table", "set budget")


def test_the_page_is_all_its_own() -> None:
    """No address of others, no inline script or style, which the policy would refuse."""
    folder = Path(__file__).resolve().parents[2] / "wpinq" / "service" / "page"
    for path in folder.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text and "https://" not in text, path
        assert "innerHTML" not in text and "outerHTML" not in text and "insertAdjacentHTML" not in text, path
        assert " style=" not in text and "onclick=" not in text, path
