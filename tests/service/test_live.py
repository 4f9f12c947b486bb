"""The pages below /live of a running service, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.report.web import browser
from tests.service.conftest import NO_PROGRAM, serving

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(browser.PROGRAM is None, reason="no Chromium here (Debian: apt install chromium)"),
]
TEXT = "document.querySelector('main').textContent"


def test_pages_follow_the_service_without_a_complaint(stored: Program, suite: Path, tmp_path: Path) -> None:
    with serving(stored, suite, "--no-worker") as service, browser.tab(tmp_path) as tab:
        tab.open(f"{service.url}/live")
        assert "The newest attempts" in tab.ask("document.body.textContent")
        worker = stored.start("service", "workers")
        try:
            found = service.send(source=NO_PROGRAM, label="seen at once")
            tab.until(f"{TEXT}.includes('seen at once')")
            tab.open(f"{service.url}/live/attempts/{found['result']['attempt']}")
            assert NO_PROGRAM in tab.ask(TEXT)
            assert tab.ask("document.querySelector('header nav a').getAttribute('href')") == "/live/"
        finally:
            worker.terminate()
            worker.communicate(timeout=60)
        assert tab.complaints == []
        ours = f"{service.url}/live", "data:image/"
        assert [each for each in tab.requests if not each.startswith(ours)] == []


def test_a_password_opens_them_where_callers_have_tokens(
    stored: Program, suite: Path, tmp_path: Path
) -> None:
    token = stored.run("service", "callers", "add", "reader").stdout.strip()
    with serving(stored, suite, "--no-worker", "--live") as service, browser.tab(tmp_path) as tab:
        tab.open(service.url.replace("http://", f"http://reader:{token}@") + "/live/")
        assert "The newest attempts" in tab.ask("document.body.textContent")
        assert tab.complaints == []
    with serving(stored, suite, "--no-worker") as service:
        bearer = {"Authorization": f"Bearer {token}"}
        assert service.ask("GET", "/live/", headers=bearer).status_code == 404, "only where it is asked for"
