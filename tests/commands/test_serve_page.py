"""The page of `fairseq-milk serve` in a real browser."""

import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List
from urllib.parse import urlsplit

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from fairseq_milk.live.serving.limits import Limits
from fairseq_milk.live.serving.running import Address
from tests.support.browsers import chromium
from tests.support.servers import serving
from tests.support.stand_in_translators import stand_in

MODELS = {"MILk": stand_in("milk"), "wait-3": stand_in("waitk")}
SENTENCE = "er hat das buch gelesen"
LAST_WORDS = """
const schedule = arguments[0], last = (name) => [...schedule.querySelectorAll(name)].at(-1).getBoundingClientRect();
const box = schedule.getBoundingClientRect();
const seen = [last(".target").left >= box.left, last(".source").top >= box.top];
return [schedule.scrollLeft > 0, schedule.scrollTop > 0, ...seen];
"""  # a schedule has scrolled to its right and lower end, and its last words are in view
EXAMPLES = [SENTENCE, "sie hat und er hat"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(MODELS, examples=EXAMPLES) as url:
        yield url


class Page:
    """The page and its controls, as a visitor uses them."""

    def __init__(self, browser: Chrome, url: str) -> None:
        self.browser = browser
        browser.get("about:blank")
        browser.get(url)
        self.wait(lambda: self.state() == "open")

    def wait(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.browser.find_element(By.TAG_NAME, "body").text
            time.sleep(0.05)

    def find(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def state(self) -> str:
        return str(self.find("#connection").get_attribute("data-state"))

    def type(self, *keys: str) -> None:
        self.find("#text").send_keys(*keys)

    def part(self, model: str, selector: str) -> WebElement:
        return self.find(f"[data-model='{model}'] {selector}")

    def translations(self) -> Dict[str, str]:
        panels = self.browser.find_elements(By.CSS_SELECTOR, ".panel")
        texts = (panel.find_element(By.CSS_SELECTOR, ".translation").text for panel in panels)
        return {str(panel.get_attribute("data-model")): text for panel, text in zip(panels, texts)}

    def expect(self, **translations: str) -> None:
        """Of MILk and of wait-3 (`wait`)."""
        expected = {{"milk": "MILk", "wait": "wait-3"}[name]: text for name, text in translations.items()}
        self.wait(lambda: {name: self.translations()[name] for name in expected} == expected)

    def schedule(self, model: str) -> str:
        return str(self.part(model, "svg").get_attribute("aria-label"))

    def problems(self) -> List[str]:
        """The errors and warnings in the browser's console."""
        return [entry["message"] for entry in self.browser.get_log("browser")]  # type: ignore[no-untyped-call]


@pytest.fixture
def page(browser: Chrome, url: str) -> Iterator[Page]:
    browser.get_log("browser")  # type: ignore[no-untyped-call]
    page = Page(browser, url)
    yield page
    assert page.problems() == []


def test_typing_translates_every_word_once_it_is_finished(page: Page) -> None:
    page.type("er")
    time.sleep(0.3)
    page.expect(milk="", wait="")
    page.type(" hat das")
    page.expect(milk="he", wait="")
    page.type(" ")
    page.expect(milk="he", wait="he")
    assert page.part("MILk", ".lag").text == "2 words" and page.part("wait-3", ".lag").text == "2 words"
    assert page.part("MILk", ".al").text == "–"  # of a part of a sentence it may be negative
    page.type("buch gelesen", Keys.ENTER)
    page.expect(milk="he has the book read", wait="he has the book read")
    whole = MODELS["wait-3"].translate(SENTENCE)
    assert whole.latency is not None
    assert page.part("wait-3", ".dal").text == f"{whole.latency.DAL:.2f}"
    assert page.part("wait-3", ".al").text == f"{whole.latency.AL:.2f}"
    story = ", ".join(f"{event.action} {event.text}" for event in whole.schedule)
    assert page.schedule("wait-3") == f"Schedule: {story}"


def test_the_schedule_grows_word_by_word(page: Page) -> None:
    page.type("er ")
    page.expect(milk="he")
    assert page.schedule("MILk") == "Schedule: READ er, WRITE he"
    page.type("hat das ")
    page.wait(lambda: page.schedule("MILk") == "Schedule: READ er, WRITE he, READ hat, READ das")
    assert len(page.browser.find_elements(By.CSS_SELECTOR, "[data-model=MILk] .head")) == 1
    points = str(page.part("MILk", ".way").get_attribute("points")).split()
    assert points[-1] == "56,28"  # third column, second row: to the right of "he", one below
    here = page.part("MILk", ".here")
    assert (here.get_attribute("cx"), here.get_attribute("cy")) == ("56", "28")


def test_a_change_of_words_that_were_sent_translates_again(page: Page) -> None:
    page.type("er hat ")
    page.expect(milk="he")
    page.type(*[Keys.BACKSPACE] * 7, "sie ")
    page.expect(milk="she")
    page.type(Keys.ENTER)
    page.expect(milk="she", wait="she")
    page.type("das ")  # replaces the sentence that has ended
    page.expect(milk="the", wait="")
    page.type(Keys.ESCAPE)
    page.expect(milk="", wait="")


def test_an_example_is_played_at_the_chosen_speed(page: Page) -> None:
    page.browser.execute_script(
        "const s = document.querySelector('#speed'); s.value = 400; s.dispatchEvent(new Event('input'))"
    )
    assert page.find("#wpm").text == "400 words per minute"
    page.find("#examples button").click()
    began = time.monotonic()
    assert page.find("#play").text == "Stop"
    page.wait(lambda: len(page.browser.find_elements(By.CSS_SELECTOR, "#heard .sent")) >= 2)
    page.expect(milk="he has the book read", wait="he has the book read")
    assert time.monotonic() - began > 0.5  # five words and the end, 0.15 seconds each
    page.wait(lambda: page.find("#play").text == "Play")


def test_playing_can_be_stopped_by_keyboard_alone(page: Page) -> None:
    def heard() -> int:
        return len(page.browser.find_elements(By.CSS_SELECTOR, "#heard .sent"))

    page.type("er und " * 40, Keys.TAB, Keys.TAB, Keys.ENTER)  # End sentence, Play
    page.wait(lambda: page.find("#play").text == "Stop")
    page.wait(lambda: heard() >= 2)
    page.wait(lambda: page.translations()["MILk"].startswith("he and"))
    page.browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert page.find("#play").text == "Play"
    before = heard()
    time.sleep(0.6)
    assert before == heard() < 80


def test_knobs_translate_the_same_words_again(page: Page) -> None:
    page.type("er hat das ")
    page.expect(milk="he", wait="he")
    page.part("MILk", "input[type=range]").send_keys(Keys.HOME)
    page.expect(milk="he has the", wait="he")
    assert page.part("MILk", "output").text == "0.05"
    page.part("MILk", ".reset").click()
    page.expect(milk="he", wait="he")


def test_a_model_can_be_put_aside(page: Page) -> None:
    page.find("#chosen input").click()
    page.type("er hat das ")
    page.expect(wait="he")
    assert not page.find("[data-model=MILk]").is_displayed()
    page.find("#chosen input").click()
    page.expect(milk="he", wait="he")


def test_what_cannot_be_translated_is_reported(page: Page) -> None:
    page.type("x" * 61, " ")
    page.wait(lambda: page.find("#refusal").is_displayed())
    assert page.find("#refusal").text == "a word may have at most 60 letters"
    page.type(Keys.ESCAPE, "er ")
    page.expect(milk="he")
    assert not page.find("#refusal").is_displayed()


def test_a_lost_connection_recovers_and_nothing_is_lost(browser: Chrome) -> None:
    with serving(MODELS) as url:
        page = Page(browser, url)
        page.type("er hat ")
        page.expect(milk="he")
    page.wait(lambda: page.state() == "lost")
    page.type("das buch ")
    with serving(MODELS, address=Address(port=urlsplit(url).port or 0)):
        page.wait(lambda: page.state() == "open")
        page.expect(milk="he", wait="he has")
        page.type("gelesen", Keys.ENTER)
        page.expect(milk="he has the book read", wait="he has the book read")


def test_an_idle_page_goes_on_when_something_is_typed(browser: Chrome) -> None:
    with serving(MODELS, Limits(idle_seconds=1)) as url:
        page = Page(browser, url)
        page.type("er ")
        page.expect(milk="he")
        page.wait(lambda: page.state() == "idle")
        page.type("und ")
        page.expect(milk="he and")


def test_a_phone_shows_everything_without_scrolling_sideways(url: str, tmp_path: Path) -> None:
    with chromium(tmp_path, 500, 800) as browser:  # as narrow as a window can be
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
        )
        page = Page(browser, url)
        page.type(SENTENCE, Keys.ENTER)
        page.expect(milk="he has the book read")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
        assert not page.find("details.knobs").get_attribute("open")
        small = "return [...document.querySelectorAll('button, #text')].map(e => e.getBoundingClientRect().height)"
        assert min(browser.execute_script(small)) >= 24
        page.type(Keys.ESCAPE, " ".join(["er", "und", "sie", "hat"] * 6), Keys.ENTER)
        page.wait(lambda: page.schedule("wait-3").endswith("WRITE has"))
        assert browser.execute_script(LAST_WORDS, page.part("wait-3", ".schedule")) == [True] * 4
