"""A provider of another package, as CONTRIBUTING.md describes one: it plays answers from a script.

`scripted:FILE` answers with the texts in a JSON file, by `PROBLEM SAMPLE TURN`. Each question is written to
`asked.txt` in the current directory. A question without a text is never answered.
"""

from __future__ import annotations

import json
from pathlib import Path

import anyio

from kernelproof.providers.body import response_from_body
from kernelproof.providers.protocol import Provider, ProviderOptions, Question, provider
from kernelproof.types import Response


@provider("scripted")
class Scripted(Provider):
    """Answers from a file."""

    def __init__(self, rest: str, options: ProviderOptions) -> None:
        """`rest` is what follows `scripted:`."""
        self._file = Path(rest)
        self._answers: dict[str, str] = json.loads(self._file.read_text())

    @property
    def name(self) -> str:
        """`scripted:FILE`."""
        return f"scripted:{self._file}"

    async def ask(self, question: Question) -> Response:
        """The scripted answer."""
        name = f"{question.problem_id} {question.sample} {question.turn}"
        with Path("asked.txt").open("a") as asked:
            asked.write(f"{name}\n")
        if name not in self._answers:
            await anyio.sleep_forever()
        message = {"role": "assistant", "content": self._answers[name]}
        usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
        return response_from_body(
            {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
        )
