"""The report as text: what it says, and that nothing a candidate wrote is more than text in it."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from pathlib import Path

import pytest

from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store, open_store
from kernelproof.errors import MachineError, UsageError
from kernelproof.report.plain import clean, visible
from kernelproof.report.web.facts import MOST_BUNDLE, gather
from kernelproof.report.web.pages import board, in_file, write
from kernelproof.runs.bundles.writer import bundle_bytes, bundled, write_bundle
from kernelproof.types import SandboxReport, Status
from kernelproof.version import POLICY
from tests.db import samples
from tests.hostile_texts import HARMFUL, RUN, TEXTS
from tests.report.web.parsed import Parsed


def test_figures_stand_in_a_plot_and_in_tables(good: str) -> None:
    assert ": 10.5× [10.4, 10.6] faster, by vendor:good, attempt #5</title>" in good
    assert re.search(r"vendor:good\s+5/5\s+100.0 %\s*57 to 100", Parsed(good).text)


def test_a_reader_sees_a_title_three_figures_and_the_tally_first(good: str) -> None:
    assert "<h1>2 models on kernelproof level 1: 4 of 6 problems faster, 1 slower, on Test</h1>" in good
    figures = re.findall(r"<div title=\"[^\"]+\"><dt>(.*?)</dt><dd>(.*?)</dd>", good)
    assert [value for _, value in figures] == ["5", "4", "1.81×"]
    assert figures[0][0] == "of 6 problems with a correct kernel"
    assert figures[2][0].startswith("geometric mean of vendor:good over 5 problems [")
    assert "<strong>4 faster · 1 slower · 1 not solved.</strong>" in good
    main = good[good.index("<main") :]
    assert main.index('class="figures"') < main.index('class="chart forest wide"') < main.index("<table")


def test_a_title_of_ones_own_is_the_pages(filled: Store) -> None:
    page = in_file(board(filled, Filters(), title="<b>Ours</b>"))
    assert "<title>&lt;b&gt;Ours&lt;/b&gt;</title>" in page and "<h1>&lt;b&gt;Ours&lt;/b&gt;</h1>" in page


def test_badges_say_only_what_is_stored(store: Store) -> None:
    samples.judge(store, samples.problem(), samples.settings(), speedup=2.0)
    said = re.findall(r"<li title=[^>]*>(.*?)</li>", in_file(board(store, Filters())))
    assert said == ["A/A spread 0.2 %", "rigor standard", f"rules of version {POLICY}"]
    attempt = samples.begin(store, samples.problem(2), samples.settings())
    (check,) = samples.verification(samples.problem(2)).checks
    names = ("values: drawn", "values: repeat", "values: drawn 2", "values: tiny", "host_clock")
    judged = samples.verification(samples.problem(2), speedup=3.0).model_copy(
        update={
            "checks": tuple(check.model_copy(update={"name": name}) for name in names),
            "sandbox": SandboxReport(tier="A"),
        }
    )
    store.record_verification(attempt, judged)
    store.finish_attempt(attempt, Status.CORRECT)
    shown = in_file(board(store, Filters(problem="level1/2")))
    said = re.findall(r"<li title=[^>]*>(.*?)</li>", shown)
    assert said[:3] == ["strongest sandbox (tier A)", "3 sets of inputs", "two clocks"]


def test_a_bundle_is_in_the_page_as_it_is_in_a_file(filled: Store, tmp_path: Path) -> None:
    page = in_file(board(filled, Filters(), report=gather(filled, Filters(), 1, bundle_bytes)))
    ((name, data),) = re.findall(r'<a download="(.*?)" href="data:application/zip;base64,([\w+/=]+)">', page)
    assert name == "attempt-5.bundle"
    write_bundle([bundled(filled, 5)], tmp_path / name)
    assert base64.b64decode(data) == (tmp_path / name).read_bytes()
    assert f"kernelproof reproduce {name}" in Parsed(page).text


def test_a_large_bundle_stays_out_of_the_page(filled: Store) -> None:
    page = in_file(
        board(filled, Filters(), report=gather(filled, Filters(), 1, lambda *_: bytes(MOST_BUNDLE + 1)))
    )
    assert "data:application/zip" not in page
    assert "kernelproof bundle 5 -o attempt-5.bundle" in Parsed(page).text


def test_kernels_come_by_their_claims_and_differ_from_their_parents(good: str) -> None:
    kernels = re.findall(r'<details class="kernel" id="kernel-(\d+)">\n<summary><h3>(level1/\d+)', good)
    assert [problem for _, problem in kernels] == [f"level1/{n}" for n in (3, 1, 5, 10, 2)]
    text = Parsed(good).text
    assert "Difference to its parent, attempt #10" in text
    assert "+class ModelNew: mended = True" in text
    assert text.count("Difference to the reference") == len(kernels)
    assert f"kernelproof reproduce attempt-{kernels[0][0]}.bundle" in text


def test_fewer_kernels_are_said(filled: Store) -> None:
    found = in_file(board(filled, Filters(), report=gather(filled, Filters(), 2)))
    assert found.count('class="kernel"') == 2
    assert "3 more kernels left out" in Parsed(found).text


def test_dots_of_kernels_without_a_page_have_words_but_no_link(filled: Store) -> None:
    found = in_file(board(filled, Filters()))
    assert '<g role="img" aria-label="level1/5 ' in found
    assert '<a href="#kernel' not in found


def test_an_audit_is_said(empty_database: Path, tmp_path: Path) -> None:
    path = tmp_path / "attempts.sqlite"
    shutil.copy(empty_database, path)
    with open_store(path, create=False) as store:
        attempt, judged = samples.judge(store, samples.problem(), samples.settings(), speedup=2.0)
        store.audits.record("2026-01-01T00:00:00.000+00:00", None, judged, samples.reproduction(attempt))
        text = Parsed(in_file(board(store, Filters()))).text
    assert re.search(r"audited on \d{4}-\d\d-\d\d: 1 of 1 ranked result held", text)


def test_filters_are_the_leaderboards(filled: Store) -> None:
    found = Parsed(in_file(board(filled, Filters(model="poor")))).text
    assert "model poor" in found
    assert "vendor:good" not in found
    with pytest.raises(UsageError, match="there are: vendor:good, vendor:poor"):
        board(filled, Filters(model="nobody"))


@pytest.mark.parametrize("which", ["good", "hostile"])
def test_the_policy_lets_nothing_but_our_own_texts_in(which: str, request: pytest.FixtureRequest) -> None:
    parsed = Parsed(request.getfixturevalue(which))
    (policy,) = (a["content"] or "" for t, a in parsed.elements if t == "meta" and "http-equiv" in a)
    hashes = {
        name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for name, text in parsed.within.items()
    }
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    names = [tag for tag, _ in parsed.elements]
    assert (names.count("script"), names.count("style"), names.count("meta")) == (1, 1, 5)
    assert not {"iframe", "img", "base", "object", "embed", "image", "use"} & set(names)
    for _, attributes in parsed.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src")]
        assert re.match(r"#|data:(,|application/zip;base64,[\w+/=]+)$", attributes.get("href") or "#")


def test_hostile_texts_are_seen_and_are_text(hostile: str) -> None:
    assert HARMFUL.search(hostile) is None
    parsed = Parsed(hostile)
    for text in TEXTS:
        shown = visible(text)
        assert parsed.text.count(shown) >= 7, shown
    assert "␛]0;owned␇" in parsed.text
    assert "⟨U+202E⟩gnirts⟨U+202C⟩" in parsed.text
    assert all(RUN not in text for text in parsed.within.values())


def test_visible_characters_are_those_that_clean_takes_out() -> None:
    for number in (*range(0x3000), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0080)):
        character = chr(number)
        if character != "\x1b" and not 0xD800 <= number < 0xE000:
            assert (clean(character) == character) is (visible(character) == character), hex(number)
    assert visible("a\r\nb\tc\n") == "a\nb\tc\n"


def test_charts_name_their_axes_and_colours_follow_the_page(good: str) -> None:
    charts = re.findall(r'<svg class="chart".*?</svg>', good, re.DOTALL)
    assert len(charts) == 10, "five of the board, and one of each kernel"
    assert all(re.search(r'aria-label="[^"]{20,}"', chart) for chart in charts)
    assert "p (speedup)" in charts[0]
    style = Parsed(good).within["style"]
    for chart in charts:
        looks = {look for said in re.findall(r'<path class="([^"]+)"', chart) for look in said.split()}
        assert looks and all(f".{look}" in style for look in looks), looks
        assert "fill=" not in chart and "stroke=" not in chart


def test_a_place_that_cannot_be_written_is_said(filled: Store, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="cannot be written: No such file"):
        write(board(filled, Filters()), tmp_path / "none" / "report.html")


def test_dollars_have_a_column_where_they_are_known(store: Store) -> None:
    problem = samples.problem()
    for sample, cost in enumerate((0.25, 0.5)):
        run = samples.settings(f"vendor:{sample}")
        attempt = samples.begin(store, problem, run)
        store.record_response(attempt, samples.response().model_copy(update={"cost_usd": cost}))
        store.record_extraction(attempt, samples.extraction())
        store.record_verification(attempt, samples.verification(problem, speedup=2.0 + sample))
        store.finish_attempt(attempt, Status.CORRECT)
    found = in_file(board(store, Filters()))
    assert all(f'<td class="number">{cost}</td>' in found for cost in (0.25, 0.5))
    assert "$/correct</th>" in found
    assert "Problems solved over the tokens that each may cost" in found
    assert "Roofline plot" not in found, "no kernel has a roofline"
