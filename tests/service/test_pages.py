"""What the service says of itself: HTML for a browser, JSON for a program, and its API's documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.report.web import axe, browser
from tests.service.conftest import Running, serving

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_the_first_page_says_what_this_is_and_its_links_lead_somewhere(service: Running) -> None:
    about = service.ask("GET", "/").json()
    assert about["service"] == "kernelproof" and "verifies kernels" in about["about"]
    page = service.ask("GET", "/", headers=BROWSER)
    assert page.headers["content-type"].startswith("text/html") and about["about"] in page.text
    links = re.findall(r'<li><a href="([^"]+)"', page.text)
    assert links == list(about["links"]) and {"/live", "/docs", "/metrics"} <= {*links}
    for path in links:
        assert service.ask("GET", path, follow_redirects=True).status_code == 200


def test_the_documentation_names_every_operation_and_field(service: Running) -> None:
    openapi, page = service.ask("GET", "/openapi.json").json(), service.ask("GET", "/docs").text
    for path, methods in openapi["paths"].items():
        for method in methods:
            assert f"<h3>{method.upper()} <code>{path}</code></h3>" in page
    for name, schema in openapi["components"]["schemas"].items():
        assert name in page
        for field in schema["properties"]:
            assert f"<code>{field}</code>" in page
    assert "Body: EvaluationRequest" in page and "list of EvaluationRequest" in page
    assert "`" not in page.partition("<body>")[2] and "place of <code>problem</code>" in page
    assert not {"/", "/docs"} & openapi["paths"].keys()


def test_the_pages_load_nothing_and_run_nothing(service: Running) -> None:
    for path in ("/", "/docs"):
        page = service.ask("GET", path, headers=BROWSER)
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert not re.search(r"<script|src=|@import|href=\"http", page.text)


def test_a_live_page_that_is_not_there_is_not_linked(stored: Program, suite: Path) -> None:
    with serving(stored, suite, "--no-worker", "--no-live") as running:
        assert "/live" not in running.ask("GET", "/").json()["links"]


@pytest.mark.ci
@pytest.mark.skipif(browser.PROGRAM is None, reason="no Chromium here (Debian: apt install chromium)")
@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_browser_and_axe_find_nothing_wrong(service: Running, tmp_path: Path, path: str) -> None:
    with browser.tab(tmp_path) as tab:
        tab.open(service.url + path, 360)
        assert "kernelproof" in tab.ask("document.querySelector('h1').textContent")
        assert tab.complaints == []
        assert [each for each in tab.requests if not each.startswith((service.url, "data:"))] == []
        assert axe.barriers(tab) == []
