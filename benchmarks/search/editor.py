"""A synthetic model that writes and edits real C++ kernels, behind a Chat Completions server on loopback.

It reads a question as a real model gets it: the reference, the last program, what came of it, and other
programs. It changes what it finds by the rules of the synthetic proposer, blindly, and it makes the same
mistakes as often. `generate` asks it like any other server.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from benchmarks.search.kernels import CHOICES, KERNELS, LEVELS, MISTAKES, Kernel, read
from benchmarks.search.proposer import Asked, Idea, Model, Program, Proposer
from kernelproof.extraction.blocks import fenced
from kernelproof.types import Status
from tests.loopback import Quiet, serving
from tests.providers.server import completion

Message = dict[str, Any]
_PROBLEM = re.compile(r"^# Problem (\S+?)(?::|$)", re.MULTILINE)
_FAILED = re.compile(r"failed with status `(\w+)`")
_PLANS_ASKED = re.compile(r"^Do not write a program yet\. Give (\d+) plans ", re.MULTILINE)
_PLAN = re.compile(r"^# Plan$.*?^`{3,}text$\n(?P<title>.*?)$", re.MULTILINE | re.DOTALL)


def able(model: Model) -> Model:
    """A model without the failures that a kernel cannot hold."""
    return replace(
        model, seen={each: n for each, n in model.seen.items() if each in {*MISTAKES, Status.CORRECT}}
    )


class Editor:
    """Answers questions about the problems that have kernels. Thread-safe."""

    def __init__(self, model: Model, seed: int, answered: Mapping[str, int] | None = None) -> None:
        """Another seed is another model of the same kind. The n-th question about a problem gets the n-th
        random choices. `answered`: questions about each problem that another editor has answered."""
        self._proposers = {problem: Proposer(able(model), f"{seed}/{problem}", LEVELS) for problem in KERNELS}
        self._asked: Counter[str] = Counter(answered or {})
        self._lock = threading.Lock()

    def answer(self, messages: Sequence[Message]) -> str:
        """An idea, and the program in a fence; or plans, where the last question asks for them. Raises
        ValueError for a problem without kernels."""
        kernel = problem_of(messages)
        with self._lock:
            self._asked[kernel.problem_id] += 1
            number = self._asked[kernel.problem_id]
        asked, proposer = question(messages, number), self._proposers[kernel.problem_id]
        if wanted := _PLANS_ASKED.search(messages[-1]["content"]):
            return plans(proposer.plans(asked, int(wanted[1])))
        program = proposer.answer(asked)
        return f"{idea(program, asked.parent)}\n\n```python\n{kernel.source(program)}```\n"


def problem_of(messages: Sequence[Message]) -> Kernel:
    """The kernel of the problem that the first question names. Raises ValueError when it has none."""
    for message in messages:
        found = _PROBLEM.search(message["content"])
        if found is not None and found[1] in KERNELS:
            return KERNELS[found[1]]
    raise ValueError("no problem with a kernel is named")


def question(messages: Sequence[Message], number: int) -> Asked:
    """What the messages say of the parent, and of the programs that are shown beside it."""
    last = messages[-1]["content"]
    answers = [each["content"] for each in messages if each["role"] == "assistant"]
    parent = (programs(answers[-1]) or [None])[-1] if answers else None
    failed = _FAILED.search(last)
    return Asked(
        number,
        parent=parent,
        failed=Status(failed[1]) if failed and parent else None,
        shown=programs(last),
        earlier=[parent] if parent else [],
        idea=planned(last),
    )


def plans(ideas: Sequence[Idea]) -> str:
    """An answer to a question for plans: a title of each says its choices."""
    kinds = [*CHOICES.items()]
    titles = [", ".join(f"{kinds[i][0]}={kinds[i][1][level]}" for i, level in each.items()) for each in ideas]
    return "\n".join(
        f"## {n}. {title}\n\nThe rest is left open.\n" for n, title in enumerate(titles, start=1)
    )


def planned(text: str) -> Idea | None:
    """The plan that a question says to carry out; None where it says none of ours."""
    found = _PLAN.search(text)
    if found is None:
        return None
    names, idea = [*CHOICES], dict[int, int]()
    for part in found["title"].split(", "):
        name, _, value = part.partition("=")
        if name not in CHOICES or value not in CHOICES[name]:
            return None
        idea[names.index(name)] = CHOICES[name].index(value)
    return idea


def programs(text: str) -> list[Program]:
    """The programs in a text's fences that an editor wrote."""
    return [program for block in fenced(text) if (program := read(block.code)) is not None]


def idea(program: Program, parent: Program | None) -> str:
    """What an answer says before its code: the choices that differ from the parent's."""
    before = parent.point if parent else (None,) * len(LEVELS)
    changes = [
        f"{name}={values[level]}"
        for (name, values), level, old in zip(CHOICES.items(), program.point, before, strict=True)
        if level != old
    ]
    return f"Write it with {', '.join(changes) or 'nothing changed'}."


def counted(asked: Sequence[str], answered: str) -> dict[str, int]:
    """Tokens as a server counts them: four characters each."""
    told, said = sum(map(len, asked)) // 4, len(answered) // 4
    return {"prompt_tokens": told, "completion_tokens": said, "total_tokens": told + said}


@contextmanager
def served(editor: Editor, port: int = 0) -> Iterator[str]:
    """The base URL of a Chat Completions server whose only model is the editor, until the block ends.

    `port`: 0 takes a free one.
    """

    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text = editor.answer(asked["messages"])
            usage = counted([each["content"] for each in asked["messages"]], text)
            self._send(completion(text, model=asked["model"], usage=usage))

        def do_GET(self) -> None:
            self._send({"object": "list", "data": []})

        def _send(self, body: Message) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with serving(Handler, port) as url:
        yield f"{url}/v1"
