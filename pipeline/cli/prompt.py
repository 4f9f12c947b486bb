"""`kernelproof prompt`: the text a model would be asked, rendered for one problem."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelproof.backends import names, preferred
from kernelproof.cli.completion import problems
from kernelproof.cli.options import JsonOption, SuiteOption, choice
from kernelproof.report.plain import json_text, say, say_text


def prompt(
    problem: Annotated[
        str, typer.Argument(autocompletion=problems, help="The problem: level1/23, a name, or a file.")
    ],
    backend: Annotated[str, choice(names(), "What is asked for.")] = preferred(),
    size: Annotated[str, typer.Option(help="The problem's size preset.")] = "full",
    template: Annotated[
        str | None,
        typer.Option(help="A template's name, or the path of a folder.", show_default="the backend's"),
    ] = None,
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the prompt that a model gets for a problem: system and user text."""
    from kernelproof.problems import open_suite
    from kernelproof.prompting import first_prompt

    rendered = first_prompt(open_suite(suite).find(problem), backend=backend, size=size, template=template)
    if as_json:
        print(json_text(rendered))
        return
    for part, text in (("system", rendered.system), ("user", rendered.user)):
        say(f"===== {part} ({rendered.template}, prompt {rendered.sha256[:12]}) =====")
        say_text(text)
