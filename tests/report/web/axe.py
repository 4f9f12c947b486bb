"""axe-core, which looks for what keeps people out of a page: people who do not see, or use no mouse."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.report.web.browser import Tab

MINOR = ("minor", "moderate")
"""Impacts that are no barrier."""


def program() -> str:
    """axe-core's JavaScript, out of a package that carries it; nothing else of that package is used."""
    spec = find_spec("axe_playwright_python")
    assert spec is not None and spec.submodule_search_locations, "pip install -e '.[test]'"
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


def barriers(tab: Tab) -> list[str]:
    """Each serious or critical violation on the page that a tab shows: its rule, and where it is."""
    if not tab.ask("typeof axe === 'object'"):
        tab.ask(f"{program()}; 0")
    found = tab.ask("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations)")
    return [_said(one) for one in found if one["impact"] not in MINOR]


def _said(violation: dict[str, Any]) -> str:
    places = [f"{node['target'][0]}: {node['failureSummary']}" for node in violation["nodes"][:5]]
    return f"{violation['id']} ({violation['impact']}), {len(violation['nodes'])} times: " + "; ".join(places)
