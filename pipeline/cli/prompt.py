"""`kernelproof prompt`: the text a model would be asked, rendered for one problem."""

from __future__ import annotations

from typing import Annotated

from kernelproof.backends import names, preferred
from kernelproof.cli.completion import problems
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import JsonOption, SuiteOption
from kernelproof.report.plain import json_text, say, say_text


def prompt(
    problem: Annotated[
        str, Argument("The problem: level1/23, a name, or a file.", parser=str, offered=problems)
    ],
    backend: Annotated[str, Option("What is asked for.", words=names())] = preferred(),
    size: Annotated[str, Option("The problem's size preset.", parser=str)] = "full",
    template: Annotated[
        str | None,
        Option("A template's name, or the path of a folder.", parser=str, show_default="the backend's"),
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
