"""`deploy/grafana.json` against the figures of a real service: each name, label and value in it is there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.service.conftest import Running

DASHBOARD: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "deploy" / "grafana.json").read_text(encoding="utf-8")
)
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
PROMQL = {"by", "max", "sum", "delta", "increase"}
"""The words of the language that the dashboard uses."""
SELECTOR = re.compile(r'\{(\w+)(=~?)"([^"]*)"\}')


@pytest.fixture(scope="module")
def families(service: Running) -> list[Metric]:
    """What `/metrics` has after one evaluation."""
    service.send()
    return list(text_string_to_metric_families(service.ask("GET", "/metrics").text))


def names(expression: str) -> set[str]:
    """The metrics that it reads: its words outside of label lists, durations and PromQL itself."""
    rest = re.sub(r"\{[^}]*\}|\[\w+\]|\bby \([\w, ]*\)", "", expression)
    return set(re.findall(r"[a-zA-Z_]\w*", rest)) - PROMQL


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_reads_what_the_service_has(families: list[Metric], expression: str) -> None:
    samples = [sample for family in families for sample in family.samples if sample.name in names(expression)]
    assert {sample.name for sample in samples} == names(expression) != set()
    shown = {(name, value) for sample in samples for name, value in sample.labels.items()}
    wanted = {
        (name, value) for name, _, values in SELECTOR.findall(expression) for value in values.split("|")
    }
    assert wanted <= shown and expression.count("{") == len(SELECTOR.findall(expression))
    grouped = re.findall(r"\bby \((\w+)\)", expression)
    assert set(grouped) <= {name for name, _ in shown}


def test_every_figure_of_the_service_is_shown(families: list[Metric]) -> None:
    shown = set().union(*map(names, EXPRESSIONS))
    assert {sample.name for family in families for sample in family.samples} == shown


def test_each_state_is_shown_and_only_counters_are_increased(families: list[Metric]) -> None:
    [states] = (family for family in families if family.name == "kernelproof_evaluations")
    drawn = {
        value
        for each in EXPRESSIONS
        for _, _, values in SELECTOR.findall(each)
        for value in values.split("|")
    }
    assert {sample.labels["state"] for sample in states.samples} == drawn
    kinds = {sample.name: family.type for family in families for sample in family.samples}
    for function, kind in (("increase", "counter"), ("delta", "gauge")):
        inside = re.findall(rf"\b{function}\((\w+)", " ".join(EXPRESSIONS))
        assert inside and {kinds[name] for name in inside} == {kind}


def test_a_legend_names_labels_that_its_expression_keeps() -> None:
    for panel in DASHBOARD["panels"]:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for target in panel["targets"]:
            kept = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            assert kept == re.findall(r"^max by \((\w+)\)", target["expr"])
    assert len({panel["title"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
