"""What every provider of model answers is: one question in, one response out; `@provider` registers one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from kernelproof.errors import UsageError
from kernelproof.registry import Registry, class_with
from kernelproof.types import Prompt, Response
from kernelproof.wording import encodable


@dataclass(frozen=True)
class AskEvent:
    """What is known of a question whose answer has not come yet."""

    kind: Literal["sent", "streaming", "waiting", "batched", "arrived"]
    """`sent`: the server has it. `streaming`: tokens come. `waiting`: it is sent later, as `note` says.
    `batched`: it is in a batch, which is collected or at the server. `arrived`: the batch's answers are here,
    and wait to be read."""
    tokens: int = 0
    """Tokens (or, where the server does not say, pieces) that came so far."""
    note: str = ""
    batch: str = ""
    """The batch that it is in; empty as long as that is collected."""


OnAsk = Callable[[AskEvent], None]


def no_events(_: AskEvent) -> None:
    """Ignores the event: the default of callers that need none."""


async def always_room() -> None:
    """Returns at once: the default of callers that take every answer."""


def nothing_more() -> bool:
    """Returns False: the default of callers that ask all questions together."""
    return False


@dataclass(frozen=True)
class Question:
    """One call to a model: which attempt it is for, and the prompt."""

    problem_id: str
    backend: str
    sample: int
    """Index of the sample, from 0."""
    turn: int
    """Turn of the conversation, from 1."""
    prompt: Prompt
    key: str = ""
    """SHA-256 that tells this question from every other one: the `Idempotency-Key` of a request, the custom
    id in a server's batch."""
    tell: OnAsk = field(default=no_events, compare=False, repr=False)
    """Hears what becomes of the question before its answer comes."""
    room: Callable[[], Awaitable[None]] = field(default=always_room, compare=False, repr=False)
    """Returns when the asker can take the answer. A provider to which many answers come at once awaits it
    before it reads each, so that they are not all in memory."""

    more_to_come: Callable[[], bool] = field(default=nothing_more, compare=False, repr=False)
    """Whether more questions may follow soon, because answers are being judged. A provider that collects
    questions waits for them for a while."""

    def __str__(self) -> str:
        return f"{self.problem_id}, backend {self.backend}, sample {self.sample}, turn {self.turn}"


@dataclass(frozen=True)
class ProviderOptions:
    """What the user set for the model, beside its name. A provider refuses what it cannot obey."""

    base_url: str | None = None
    """The server's address."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request: `temperature`, `max_completion_tokens` ...; only those that were set."""
    timeout_s: float = 600.0
    """Longest silence of the server, in seconds. An answer that keeps coming may take longer."""
    max_retries: int = 2
    """How often a question is sent again after a failure that may pass. A busy server (429) is none."""
    concurrency: int = 8
    """Most questions that the server has at the same time. It may be given fewer for a while."""
    endpoint: Literal["chat", "responses"] = "chat"
    """Which of OpenAI's two interfaces the server is asked by."""
    stream: bool = True
    """Whether the answer is taken as it comes."""
    key_variable: str | None = None
    """The environment variable that holds the key; None: the provider's own, such as `OPENAI_API_KEY`."""
    context_length: int | None = None
    """Tokens that the model's context holds; None: what the server says."""
    server_batch: bool = False
    """Whether questions are handed over in files, by the server's batch endpoint."""

    def refuse(self, name: str, because: str) -> None:
        """Raises UsageError if a base URL, a sampling setting or the batch endpoint was asked for; `because`
        says why none can be.
        """
        if self.base_url is not None or self.sampling:
            raise UsageError(f"{name} {because}: a base URL and sampling settings have no effect on it")
        if self.server_batch:
            raise UsageError(f"{name} {because}: it has no batch endpoint; leave out --batch")


class OpenBatch(NamedTuple):
    """A batch of questions that a server was handed, with answers that may still come."""

    id: str
    keys: Sequence[str]
    """The keys of its questions that are still without an answer in the store, or were when it was made."""


class BatchJournal(Protocol):
    """Where batches at servers are written down, so that another process can wait for their answers.

    Its methods may be called in any thread. Each is one transaction.
    """

    def open_batches(self, model: str, base_url: str | None) -> list[OpenBatch]:
        """Those that were written down for this model at this address, the oldest first."""

    def submitted(self, model: str, base_url: str | None, batch_id: str, keys: Sequence[str]) -> None:
        """Writes one down."""

    def renamed(self, batch_id: str, new: str) -> None:
        """It is called otherwise from now on."""

    def closed(self, batch_id: str, keys: Collection[str] | None = None) -> None:
        """No answer to these questions comes of it; None: to none of its questions."""


@runtime_checkable
class KeepsBatches(Protocol):
    """A provider that can wait for answers which another process asked for."""

    def keep_batches(self, journal: BatchJournal) -> None:
        """Reads and writes `journal` from now on."""


class Provider(Protocol):
    """A source of answers. Several questions may be asked at the same time.

    A class that inherits from this needs `name` and `ask` alone.
    """

    @property
    def name(self) -> str:
        """What a run records as its model: `openai:MODEL`, `replay:FILE`; in general `KIND:REST`."""

    async def ask(self, question: Question) -> Response:
        """The answer, raw. `question.tell` hears what becomes of it meanwhile, if the provider knows.

        Raises ProviderError when this question got none (its `retriable` says whether asking again can
        help), and ProviderFatal when no question can get one and the run must stop.
        """

    def turns(self, problem_id: str, backend: str, sample: int) -> int | None:
        """How many turns of a sample it can answer, where a conversation ends; None: no limit."""
        return None

    async def aclose(self) -> None:
        """Give connections and files back; nothing may be asked afterwards."""
        return None


def messages(prompt: Prompt) -> list[dict[str, str]]:
    """The prompt as Chat Completions messages: system, earlier turns, user.

    Lone surrogates, which an earlier answer may hold and no request can carry, are replaced.
    """
    return [{"role": role, "content": encodable(text)} for role, text in prompt.turns]


class ProviderClass(Protocol):
    """What a registered class is called with."""

    def __call__(self, rest: str, options: ProviderOptions, /) -> Provider:
        """`rest` is what follows `KIND:`, never empty. Raises UsageError for what makes no sense,
        ProviderFatal when a key is missing.
        """


PROVIDERS: Registry[ProviderClass] = Registry(
    "provider",
    group="kernelproof.providers",
    package="kernelproof.providers",
    check=class_with("ask", "turns", "aclose"),
)


provider = PROVIDERS.named
