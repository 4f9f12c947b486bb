"""Which combination comes next. Equal scores lead to equal proposals: so a killed tuning can go on.

Each proposer takes turns of `ask` and `tell`. It may be asked again before it was told what came of earlier
proposals.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any, Protocol

from kernelproof.errors import UsageError
from kernelproof.runs.tuning.template import MOST_COUNTED, Template, Values

_LOOKS = 20
"""Proposals of Optuna's that were tried before, or are not allowed, until another way is taken."""
_DRAWS = 1_000


class Proposer(Protocol):
    """Proposes each combination at most once, the source's own first."""

    name: str

    def ask(self) -> Values | None:
        """The next combination; None when none is left."""
        ...

    def tell(self, values: Values, score: float | None) -> None:
        """How good a combination is, the more the better; None: it failed."""
        ...


def proposer_for(template: Template, trials: int, seed: int) -> Proposer:
    """Every combination where `trials` are enough for that, else what Optuna proposes.

    Raises UsageError where Optuna is needed and not installed.
    """
    if template.allowed is not None and template.allowed <= trials:
        return Grid(template.original, list(template.combinations()))
    return Tpe(template, seed)


class Grid:
    """All combinations, those near the source's own first."""

    name = "all combinations"

    def __init__(self, original: Values, combinations: list[Values]) -> None:
        def distance(values: Values) -> tuple[int, Values]:
            return sum(one != own for one, own in zip(values, original, strict=True)), values

        self._left = sorted(combinations, key=distance, reverse=True)

    def ask(self) -> Values | None:
        return self._left.pop() if self._left else None

    def tell(self, values: Values, score: float | None) -> None:
        pass


class Tpe:
    """Optuna's tree-structured Parzen estimator, over the positions of the values in their lists."""

    name = "Optuna's TPE"

    def __init__(self, template: Template, seed: int) -> None:
        optuna = _optuna(template)
        self._template, self._random = template, random.Random(seed)
        self._pruned = optuna.trial.TrialState.PRUNED
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._trials: dict[Values, Any] = {}
        self._scores: dict[Values, float | None] = {}
        self._enqueue(template.original)

    def ask(self) -> Values | None:
        for _ in range(_LOOKS):
            trial, values = self._drawn()
            if values in self._trials:
                self._settle(trial, self._scores.get(values))
            elif not self._template.allows(values):
                self._settle(trial, None)
            else:
                self._trials[values] = trial
                return values
        unseen = self._unseen()
        if unseen is not None:
            self._enqueue(unseen)
            self._trials[unseen] = self._drawn()[0]
        return unseen

    def tell(self, values: Values, score: float | None) -> None:
        self._scores[values] = score
        self._settle(self._trials[values], score)

    def _settle(self, trial: Any, score: float | None) -> None:
        """What failed, or is not allowed, ranks behind all that did not."""
        if score is None:
            self._study.tell(trial, state=self._pruned)
        else:
            self._study.tell(trial, score)

    def _enqueue(self, values: Values) -> None:
        places = zip(self._template.parameters, values, strict=True)
        self._study.enqueue_trial({one.name: one.values.index(value) for one, value in places})

    def _drawn(self) -> tuple[Any, Values]:
        trial = self._study.ask()
        return trial, self._each(lambda name, last: trial.suggest_int(name, 0, last))

    def _each(self, choose: Callable[[str, int], int]) -> Values:
        return tuple(one.values[choose(one.name, len(one.values) - 1)] for one in self._template.parameters)

    def _unseen(self) -> Values | None:
        """One that was not asked for yet, where Optuna comes back to the same ones."""
        if self._template.size <= MOST_COUNTED:
            left = [values for values in self._template.combinations() if values not in self._trials]
            return self._random.choice(left) if left else None
        for _ in range(_DRAWS):
            values = self._each(lambda _, last: self._random.randint(0, last))
            if values not in self._trials and self._template.allows(values):
                return values
        return None


def _optuna(template: Template) -> Any:
    try:
        import optuna
    except ImportError:
        raise UsageError(
            f"{template.size} combinations are more than --trials allows, and the package optuna, which "
            "chooses among them, is missing; install it (pip install 'kernelproof[tune]'), or give more "
            "--trials, or declare fewer values"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
