"""The report in a real browser: sorting, filtering, narrow and dark, and no hostile text that runs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from kernelproof.db.store import Store
from kernelproof.report.web.pages import attempt, write
from tests.report.web import axe, browser
from tests.report.web.browser import Tab

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(browser.PROGRAM is None, reason="no Chromium here (Debian: apt install chromium)"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, good: str, hostile: str, filled: Store) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "good.html").write_text(good, encoding="utf-8")
    (folder / "hostile.html").write_text(hostile, encoding="utf-8")
    write(attempt(filled, filled.resolve_attempt("last")), folder / "attempt.html")
    return folder


PROBLEMS = "[...document.querySelectorAll('#problems-1 tbody tr')].filter(r => r.checkVisibility())"
NAMES = f"{PROBLEMS}.map(r => r.cells[0].textContent.split(' ')[0])"
SPEEDUP = "document.querySelectorAll('#problems-1 thead th')[2]"


def test_heads_sort_by_keyboard_and_say_so(tab: Tab, place: Path) -> None:
    tab.open(place / "good.html")
    assert tab.ask(NAMES) == [f"level1/{n}" for n in (1, 2, 3, 4, 5, 10)]
    tab.ask(f"{SPEEDUP}.querySelector('button').focus()")
    tab.press("Enter")
    assert tab.ask(f"{SPEEDUP}.getAttribute('aria-sort')") == "descending"
    assert tab.ask(NAMES) == [f"level1/{n}" for n in (3, 1, 5, 10, 2, 4)], "as numbers, and empty ones last"
    tab.press("Enter")
    assert tab.ask(f"{SPEEDUP}.getAttribute('aria-sort')") == "ascending"
    assert tab.ask(NAMES) == [f"level1/{n}" for n in (2, 10, 5, 1, 3, 4)]
    tab.press("Tab")
    assert tab.ask("document.activeElement.tagName") == "BUTTON"
    assert tab.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid", "focus is seen"
    tab.press("Enter")
    assert tab.ask("document.querySelectorAll('#problems-1 [aria-sort]').length") == 1
    assert tab.complaints == []


def test_problems_are_filtered_by_words_and_pace(tab: Tab, place: Path) -> None:
    tab.open(place / "good.html")
    typed = "(q => { q.value = %r; q.dispatchEvent(new Event('input', {bubbles: true})) })(%s)"
    tab.ask(typed % ("LEVEL1/1 good", "document.querySelector('.filter input')"))
    assert tab.ask(NAMES) == ["level1/1", "level1/10"]
    assert tab.ask("document.querySelector('.filter output').value") == "2 of 6 problems"
    tab.ask(typed % ("", "document.querySelector('.filter input')"))
    tab.ask(typed % ("slower", "document.querySelector('.filter select')"))
    assert tab.ask(NAMES) == ["level1/2"]
    tab.ask(typed % ("none", "document.querySelector('.filter select')"))
    assert tab.ask(NAMES) == ["level1/4"]
    assert tab.complaints == []


def test_a_dot_of_the_roofline_plot_names_its_kernel_and_leads_to_it(tab: Tab, place: Path) -> None:
    tab.open(place / "good.html")
    dots = "[...document.querySelectorAll('.charts svg a')]"
    says = "level1/5 softmax: 0.6667 ms, 50 % of the roofline"
    titles = tab.ask(f"{dots}.map(a => a.querySelector('title').textContent)")
    assert titles
    assert all(title.startswith(says) for title in titles), titles
    tab.ask(f"{dots}[0].scrollIntoView({{block: 'center'}})")
    tab.ask("document.querySelectorAll('summary, a').forEach(e => e.blur())")
    tab.ask(
        f"[...document.querySelectorAll('a, button, [tabindex=\"0\"]')].findLast(e =>"
        f" e.compareDocumentPosition({dots}[0]) & 4).focus()"
    )
    tab.press("Tab")
    assert tab.ask("document.activeElement.getAttribute('aria-label')") == titles[0]
    tab.press("Enter")
    tab.until("document.querySelector('details.kernel:target')?.open")
    assert tab.ask("document.querySelector('details.kernel:target summary').textContent").startswith(
        "level1/5"
    )
    assert tab.complaints == []


def test_a_person_without_a_mouse_filters_and_opens_a_kernel(tab: Tab, place: Path) -> None:
    def forward(until: str) -> None:
        for _ in range(60):
            tab.press("Tab")
            if tab.ask(f"document.activeElement.matches({until!r})"):
                return
        raise AssertionError(f"no {until} is reached")

    tab.open(place / "good.html")
    tab.press("Tab")
    assert tab.ask("document.activeElement.textContent") == "Skip to the results"
    tab.press("Enter")
    tab.until("document.activeElement.id === 'main'")
    forward(".filter input")
    tab.type("level1/3")
    assert tab.ask(NAMES) == ["level1/3"]
    forward("#problems-1 a")
    tab.press("Enter")
    tab.until("document.querySelector('details.kernel:target')?.open")
    forward("details.kernel[open] details summary")
    tab.press("Enter")
    tab.until("document.activeElement.parentNode.open")
    assert tab.ask("document.activeElement.textContent") == "Reference"
    assert tab.complaints == []


@pytest.mark.parametrize("which", ["good", "hostile"])
def test_print_cuts_nothing_off_and_is_light(tab: Tab, place: Path, which: str) -> None:
    tab.open(place / f"{which}.html", dark=True)
    tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    tab.show_print(dark=True)
    assert tab.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    cut = (
        "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 719"
        " || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'visible'"
        " || e.scrollHeight > e.clientHeight + 1 && getComputedStyle(e).overflowY !== 'visible')"
        ".slice(0, 9).map(e => e.outerHTML.slice(0, 200))"
    )
    assert tab.ask(cut) == []
    assert tab.ask("document.querySelector('.filter').checkVisibility()") is False
    if which == "good":
        assert tab.pdf().startswith(b"%PDF")
    assert tab.complaints == []


@pytest.mark.parametrize("which", ["good", "hostile", "attempt"])
def test_a_phone_needs_no_sideways_scrolling(tab: Tab, place: Path, which: str) -> None:
    tab.open(place / f"{which}.html", width=360)
    tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert tab.ask("document.documentElement.scrollWidth") <= 360
    assert tab.complaints == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_words_and_charts_stand_out_from_the_page(tab: Tab, place: Path, dark: bool) -> None:
    """WCAG's contrast (2.1): 4.5 for words, 3 for lines."""
    tab.open(place / "good.html", dark=dark)
    tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    every = "".join(
        f"<span class={kind}>1</span>" for kind in ("t", "k", "s", "m", "c", "n", "gi", "gd", "gu")
    )
    tab.ask(f"document.querySelector('.code code').insertAdjacentHTML('beforeend', '{every}')")
    luminance = (
        "(c => { const [r, g, b] = c.match(/[\\d.]+/g).map(v => v / 255)"
        ".map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);"
        " return 0.2126 * r + 0.7152 * g + 0.0722 * b })"
    )
    contrasts = (
        "(() => { const l = %s, under = e => e.closest('pre') ?? document.body;"
        " const page = e => l(getComputedStyle(under(e)).backgroundColor);"
        " const c = (v, on) => (Math.max(v, on) + 0.05) / (Math.min(v, on) + 0.05);"
        " return [...document.querySelectorAll(%r)].map(e => c(l(getComputedStyle(e).%s), page(e))) })()"
    )
    words = tab.ask(contrasts % (luminance, "p, td, th, small, a, .pace, figcaption, code span", "color"))
    labels = tab.ask(contrasts % (luminance, "figure svg text", "fill"))
    lines = tab.ask(contrasts % (luminance, "figure svg .line.s0, figure svg .line.s1", "stroke"))
    assert len(words) > 100
    assert min(words) >= 4.5
    assert min(labels) >= 4.5
    assert lines
    assert min(lines) >= 3
    background = tab.ask("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is not dark


def test_people_who_do_not_see_it_find_their_way(tab: Tab, place: Path) -> None:
    tab.open(place / "good.html")
    assert tab.ask("document.querySelectorAll('th:not([scope])').length") == 0
    assert tab.ask("document.querySelectorAll('table:not(:has(caption))').length") == 0
    assert (
        tab.ask("['header', 'nav', 'main', 'footer'].map(n => document.querySelectorAll(n).length)")
        == [1] * 4
    )
    assert tab.ask("document.querySelectorAll('svg:not([aria-label]):not([aria-hidden])').length") == 0
    assert (
        tab.ask("[...document.querySelectorAll('input, select')].every(e => e.labels.length === 1)") is True
    )
    ids = tab.ask("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    levels = tab.ask("[...document.querySelectorAll('h1, h2, h3, h4')].map(e => +e.tagName[1])")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("which", ["good", "attempt"])
def test_axe_finds_no_barrier(tab: Tab, place: Path, which: str, dark: bool) -> None:
    tab.open(place / f"{which}.html", 360 if dark else 1000, dark=dark)
    tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert axe.barriers(tab) == []
    assert tab.complaints == []


def test_axe_sees_a_barrier(tab: Tab, place: Path) -> None:
    tab.open(place / "good.html")
    tab.ask("document.querySelector('main').append(document.createElement('button'))")
    (found,) = axe.barriers(tab)
    assert found.startswith("button-name (critical)")


def test_no_hostile_text_runs_loads_or_breaks_out(tab: Tab, place: Path) -> None:
    tab.open(place / "hostile.html")
    tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    one_each = (
        "new Map([...document.querySelectorAll('a:not([download])')].map(a => [a.outerHTML.slice(0, 50), a]))"
    )
    tab.ask(f"{one_each}.forEach(a => a.dispatchEvent(new MouseEvent('click', {{cancelable: true}})))")
    assert tab.ask("document.title") == "Kernels that were verified"
    assert tab.ask("document.querySelectorAll('script').length") == 1
    assert (
        tab.ask(
            "document.querySelectorAll('iframe, img, base, form:not(.filter), a[href^=javascript]').length"
        )
        == 0
    )
    assert (
        tab.ask("[...document.querySelectorAll('main, footer')].every(e => e.parentNode === document.body)")
        is True
    )
    # The page itself, its empty icon, and the same page again where a link leads to a place in it.
    assert all(url.startswith(("file:", "data:,")) for url in tab.requests), tab.requests
    assert tab.complaints == []
