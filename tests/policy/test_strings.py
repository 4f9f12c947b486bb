"""Native source is seen through the ways in which programs put strings together."""

from __future__ import annotations

import pytest

from tests.policy.samples import CLEAN, changed, findings

PROTOTYPE = "torch::Tensor scale(torch::Tensor x, torch::Tensor y, double scale);"
WRONG = "torch::Tensor scale(torch::Tensor x);"


@pytest.mark.parametrize(
    "statements",
    [
        "proto = '{}'",
        "first = '{}'\nproto = first",
        "proto = '' + '{}'",
        "proto = ''\nproto += '{}'",
        "proto = f'{{NAME}} {}'",
        "import textwrap\nproto = textwrap.dedent('''\n    {}\n''')",
        "proto = ['{}']",
        "proto = '{}'.strip()",
    ],
)
def test_a_prototype_is_found_behind(statements: str) -> None:
    using = changed(f'cpp_sources="{PROTOTYPE}"', "cpp_sources=proto")

    def program(prototype: str) -> str:
        return changed("ext = ", statements.replace("{}", prototype) + "\n\next = ", using)

    assert findings(program(WRONG), "unmatched_prototype")
    assert findings(program(PROTOTYPE), "unmatched_prototype") == []


@pytest.mark.parametrize("value", ["read()", "proto", "'a{}'.format(1)", "f(proto) + 'x'"])
def test_what_the_source_does_not_show_is_not_judged(value: str) -> None:
    source = changed("ext = ", f"proto = {value}\n\next = ", CLEAN).replace(f'"{PROTOTYPE}"', "proto")

    assert findings(source, "unmatched_prototype") == []
    assert findings(source, "missing_cpp_sources") == []
