"""The report in a browser, in every state: no error, no request, labelled, legible, and alive."""

from __future__ import annotations

import pytest

from cloister.report.page.build import make_page
from tests.report.test_page import STATES, make_private


@pytest.fixture
def write(tmp_path):
    def write(**changes):
        page = tmp_path / "page.html"
        page.write_text(make_page(make_private(**changes), job="name = 'x'", commands=("cloister run job.toml",)))
        return page

    return write


LOOKS = [(state, 1100, False) for state in ("private", *STATES)]
LOOKS += [(state, 320, True) for state in ("private", "exact", "all noise", "weak")]


@pytest.mark.parametrize(("state", "width", "dark"), LOOKS)
def test_every_state_has_no_error_and_is_legible(state, width, dark, browser, write):
    page = write(**STATES.get(state, {}))
    browser.show(page, width=width, dark=dark)
    assert browser.read_console() == []
    assert browser.read_requests() == [page.as_uri()]
    assert browser.check_access() == {}
    assert browser.run("return document.documentElement.scrollWidth") <= width, "nothing is cut off at the side"


def test_the_page_is_painted_within_a_second(browser, write):
    browser.show(write())
    assert browser.read_paint_s() < 1


def test_a_click_sorts_and_the_mean_stays_last(browser, write):
    browser.show(write())
    read = "return [...document.querySelectorAll('#numbers tbody tr')].map(row => row.cells[2].textContent)"
    head = browser.find_all("#numbers thead th")[2]
    head.find_element("css selector", "button").click()
    ages = browser.run(read)
    assert ages[:4] == sorted(ages[:4])
    assert head.get_attribute("aria-sort") == "ascending"
    head.find_element("css selector", "button").click()
    assert browser.run(read)[:4] == sorted(ages[:4], reverse=True)
    assert browser.run(read)[4] == ages[4]


def test_the_map_shows_the_columns_that_are_chosen(browser, write):
    browser.show(write())
    read = "return [...document.querySelectorAll('#map .point')].map(p => p.querySelector('title').textContent)"
    place = "return document.querySelector('#map .point').getAttribute('transform')"
    before = browser.run(place)
    browser.run(
        "const list = document.querySelector('select[data-axis=x]');"
        "list.value = '2'; list.dispatchEvent(new Event('change'))"
    )
    assert browser.run(read)[0].startswith("cluster 0: bmi 23.50 ± 0.25, ")
    assert browser.run(place) != before
    assert browser.find("#map [data-of=x]").text == "bmi"


def test_a_mark_tells_its_value_on_focus(browser, write):
    browser.show(write())
    browser.run("document.querySelector('.panel .point').focus()")
    assert browser.run("return document.getElementById('told').textContent") == "cluster 0, age: 33.00 ± 0.25"
    assert browser.run("return document.getElementById('told').hidden") is False


def test_without_the_script_everything_is_there(browser, write):
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.show(write())
        assert "72.00 ± 0.25" in browser.find("#numbers").text
        assert not any(list_.is_displayed() for list_ in browser.find_all(".scripted"))
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
