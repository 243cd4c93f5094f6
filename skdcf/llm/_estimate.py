"""What a run will cost, said before the first call, and a person's word on it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from ._calls import price_of
from ._client import ChatClient
from ._step import Expense


@dataclass(frozen=True)
class Estimate:
    """Calls and tokens that a run will need, about.

    Parameters
    ----------
    n_problems : int
        Problems of the run.
    n_done : int
        Those of them whose replies are all in the cache; they cost nothing.
    calls : int
    prompt_tokens, completion_tokens : int
        Guessed from the lengths of the texts, four characters to a token. Models that
        think before they answer write several times as much.
    cost : float or None
        By the prices of the client, None where these are not known.
    """

    n_problems: int
    n_done: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens

    def __str__(self):
        price = "" if self.cost is None else f", costing about {self.cost:.4g}"
        return (
            f"{self.n_problems} problems, of which {self.n_done} are in the cache: about "
            f"{self.calls:,} calls with {self.prompt_tokens:,} tokens of prompts and "
            f"{self.completion_tokens:,} of replies{price}"
        )


def make_estimate(n_problems: int, expenses: list[Expense], prices) -> Estimate:
    """From what each problem that is not in the cache will need."""
    total = sum(expenses, Expense())
    cost = price_of(total.prompt_tokens, total.completion_tokens, prices)
    return Estimate(n_problems, n_problems - len(expenses), *total, cost)


def check_budget(
    client: ChatClient,
    estimate: Estimate,
    confirm: Callable[[Estimate], bool] | None,
) -> None:
    """ValueError if the estimate is above the client's limit and nobody agrees to it."""
    limit, unit = client.limit()
    amount = getattr(estimate, unit)
    if amount <= limit:
        return
    if not (confirm or _ask)(estimate):
        raise ValueError(
            f"nothing was called: {estimate}. That is above confirm_above={limit:g} "
            f"({unit}) and was not agreed to. Raise confirm_above of the ChatClient, or "
            "pass confirm=lambda estimate: True"
        )


def _ask(estimate):
    """Ask whoever sits at the terminal; without one the answer is no."""
    if not (sys.stdin and sys.stdin.isatty()):
        return False
    return input(f"{estimate}. Go on? [y/N] ").strip().lower() in ("y", "yes")
