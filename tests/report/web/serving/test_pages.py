"""The pages that a server answers with, over real HTTP."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelproof.db.scores.filters import Filters
from kernelproof.report.web.query import CHOICES, FILTERS, query_filters, query_of
from kernelproof.types import Flag
from tests.report.web.serving.server import Server


def test_the_board_shows_what_a_report_does_and_leads_to_every_attempt(server: Server) -> None:
    page = server.page()
    assert re.search(r"vendor:good\s+2/2\s", page.text)
    assert "1 attempt not finished" in page.text
    links = [attributes.get("href") for tag, attributes in page.elements if tag == "a"]
    assert {f"/attempts/{number}" for number in range(1, 6)} <= set(links)
    assert not [link for link in links if (link or "").startswith("#kernel")]


@pytest.mark.parametrize(
    ("number", "shown"), [(1, "2.00× [1.98, 2.02] faster"), (4, "wrong_output: because"), (5, "in progress")]
)
def test_every_attempt_has_a_page(server: Server, number: int, shown: str) -> None:
    text = server.page(f"/attempts/{number}").text
    assert shown in text
    assert f"Attempt #{number}" in text
    assert "Rewrite Model." in text


@pytest.mark.parametrize(
    "path", ["/attempts/99", "/attempts/x", "/attempts/-1", f"/attempts/{10**30}", "/no"]
)
def test_what_is_not_there_is_a_page_that_says_so(server: Server, path: str) -> None:
    answer, text = server.ask(path)
    assert answer.status == 404
    assert "Traceback" not in text and 'href="/"' in text


def test_filters_are_the_leaderboards(server: Server) -> None:
    text = server.page("/?model=good&level=1").text
    assert "vendor:good on kernelproof" in text and "vendor:poor" not in text
    assert "level1/3" in server.page("/attempts?run=night").text
    assert "vendor:poor" not in server.page("/attempts?run=night").text


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("modle=x", "there is no filter 'modle'; did you mean model?"),
        ("kernels=3", "there are: problem, level, suite"),
        ("numerics=fp8", "numerics must be one of fp32, tf32, not 'fp8'"),
        ("backend=opencl", "backend must be one of"),
        ("level=x", "level must be a whole number, not 'x'"),
        ("turns=99999999999999999999", "turns must be 1000 or less"),
        ("since=yesterday", "since must be a date, not 'yesterday'"),
        ("without=speed", "without must be one of shape_specialised"),
        ("model=a&model=b", "model is given twice"),
        ("model=" + "x" * 300, "model is longer than 200 characters"),
        ("model=%3Cscript%3E&modle=%3Cscript%3E", "did you mean model?"),
    ],
)
def test_filters_that_cannot_be_asked_are_explained(server: Server, query: str, told: str) -> None:
    for path in ("/", "/attempts"):
        answer, text = server.ask(f"{path}?{query}")
        assert answer.status == 400
        assert told in text.replace("&#39;", "'")
        assert "<script>" not in text


def test_an_address_and_its_filters_are_the_same_thing() -> None:
    filters = Filters(level=2, device="H100", without=(Flag.SHAPE_SPECIALISED, Flag.INTERPRETED), run="x&y")
    assert query_filters(query_of(filters)) == filters
    assert query_filters([(name, "") for name in FILTERS]) == Filters(), "as a form sends it"
    for name, words in CHOICES.items():
        for word in words:
            assert query_of(query_filters([(name, word)])) == [(name, word)]


def test_a_long_list_of_attempts_has_pages(server: Server) -> None:
    text = server.page("/attempts?before=3").text
    assert "#2" in text and "#3" not in text
    assert server.ask("/attempts?before=x")[0].status == 404


def test_every_answer_is_bound(server: Server) -> None:
    for path, method in (
        ("/", "GET"),
        ("/attempts/1", "GET"),
        ("/no", "GET"),
        ("/", "POST"),
        ("/state", "HEAD"),
    ):
        answer, _ = server.ask(path, method)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_reading_is_possible(server: Server, method: str) -> None:
    answer, _ = server.ask("/attempts/1", method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_head_has_no_text(server: Server) -> None:
    answer, text = server.ask("/", "HEAD")
    assert answer.status == 200 and text == ""
    assert int(answer.headers["content-length"]) > 10_000


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8177", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", ""],
)
def test_a_foreign_name_is_refused(server: Server, host: str) -> None:
    for path in ("/", "/state", "/attempts/1"):
        answer, text = server.ask(path, Host=host)
        assert answer.status in (400, 421), text
        assert "vendor" not in text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
def test_names_of_this_machine_are_answered(server: Server, host: str) -> None:
    assert server.ask("/", Host=f"{host}:{server.port}")[0].status == 200


def test_the_server_holds_no_torch(server: Server) -> None:
    server.page("/attempts/1")
    assert "libtorch" not in Path(f"/proc/{server.process.pid}/maps").read_text()
