"""`kernelproof prompt`: the text a model would be asked, rendered for one problem."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli.common import SuiteOption


def prompt(
    problem: Annotated[str, typer.Argument(help="The problem: level1/23, a name, or a file.")],
    backend: Annotated[str, typer.Option(help="What is asked for: cuda or cpp.")] = "cuda",
    size: Annotated[str, typer.Option(help="The problem's size preset.")] = "full",
    template: Annotated[str, typer.Option(help="A template's name, or the path of a folder.")] = "basic-v1",
    suite: SuiteOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the prompt as JSON.")] = False,
) -> None:
    """Print the prompt that a model gets for a problem: system and user text."""
    from pipeline.problems import open_suite
    from pipeline.prompting import first_prompt

    rendered = first_prompt(open_suite(suite).find(problem), backend=backend, size=size, template=template)
    if as_json:
        typer.echo(rendered.model_dump_json(indent=2))
        return
    for part, text in (("system", rendered.system), ("user", rendered.user)):
        typer.echo(f"===== {part} ({rendered.template}, prompt {rendered.sha256[:12]}) =====")
        typer.echo(text)
