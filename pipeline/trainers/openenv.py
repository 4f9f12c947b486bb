"""OpenEnv: an environment whose server is `uvicorn --factory kernelproof.trainers.openenv:app`.

A client begins with `reset(problem=ID_OR_SOURCE, max_turns=1)` and answers with `step({"answer": TEXT})`.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from openenv.core.env_server import Action, Environment, Observation, State, create_app

from kernelproof.errors import UsageError
from kernelproof.trainers.rewards import evaluated


class KernelAction(Action):  # type: ignore[misc]  # its package may be missing
    """A model's answer, which holds a program."""

    answer: str


class KernelObservation(Observation):  # type: ignore[misc]
    """The result; `reward` is None where the service failed."""

    status: str | None = None
    score: float | None = None
    feedback: str = ""
    busy_machine: bool = False
    """Whether the service's machine was busy while it was timed: noise may have lowered the score."""


class KernelEnvironment(Environment):  # type: ignore[misc]
    """One problem: the model answers, and gets the evidence until its turns are over."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._problem, self._turns, self._state = "", 1, State()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        problem: str = "",
        max_turns: int = 1,
        **more: Any,
    ) -> KernelObservation:
        """Begins with a problem. `seed` changes nothing."""
        self._problem, self._turns = problem, max_turns
        self._state = State(episode_id=episode_id or uuid4().hex, step_count=0)
        return KernelObservation()

    def step(self, action: KernelAction, timeout_s: float | None = None, **more: Any) -> KernelObservation:
        """One answer. Raises UsageError before `reset`, or where no problem has this name."""
        if not self._problem:
            raise UsageError("no problem was given: begin with reset(problem=ID_OR_SOURCE)")
        self._state.step_count += 1
        [found] = evaluated([action.answer], [self._problem])
        return KernelObservation(
            done=self._state.step_count >= self._turns,
            reward=found.reward,
            status=found.status,
            score=found.score,
            feedback=found.feedback or found.reason or "",
            busy_machine=bool(found.busy),
        )

    @property
    def state(self) -> State:
        """Which episode, and how many answers it has."""
        return self._state


def app() -> Any:
    """The environment's server."""
    return create_app(KernelEnvironment, KernelAction, KernelObservation, env_name="kernels")
