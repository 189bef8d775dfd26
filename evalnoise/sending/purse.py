"""The purse: what a protocol may still cost. Money is set aside for a sending before it goes out, so no limit is ever passed."""

from __future__ import annotations

import asyncio

from schemas.errors import BudgetError


class Purse:
    """What was spent, what is held back, and what is set aside for sendings in flight. Bound to one event loop."""

    def __init__(self, max_cost: float | None = None, *, spent: float = 0.0, held: float = 0.0) -> None:
        """Begin.

        Args:
            max_cost: US dollars that the protocol may cost; None: no limit.
            spent: What earlier runs are known to have cost.
            held: What sendings of earlier runs whose cost is unknown can have cost at most.
        """
        self.max_cost = max_cost
        self.spent = spent
        self.held = held
        self.reserved = 0.0
        """Set aside for sendings in flight."""
        self._reservations = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def reserve(self, most: float | None, *, what: str) -> float:
        """Set money aside for a sending that can cost so much; where only sendings in flight are in the way, wait for them.

        Returns what was set aside. Without a limit of cost nothing needs to be known (None) or set aside.

        Raises:
            BudgetError: It does not fit, however cheap those in flight turn out to be; or nobody knows what it can cost.
        """
        if self.max_cost is None:
            return 0.0
        if most is None:
            raise self._unbounded(what)
        while True:
            if self.spent + self.held + most > self.max_cost:
                raise self._too_much(most, what)
            if self.spent + self.held + self.reserved + most <= self.max_cost:
                break
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(settled)
            await settled
        self.reserved += most
        self._reservations += 1
        return most

    def settle(self, most: float, cost: float | None) -> None:
        """A sending for which so much was set aside has ended; None: nobody knows what it cost."""
        self._reservations -= 1
        # Sums of fractions leave a rest, and nobody is to wait for a rest.
        self.reserved = self.reserved - most if self._reservations > 0 else 0.0
        if cost is None:
            self.held += most
        else:
            self.spent += cost
        waiting, self._waiting = self._waiting, []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)

    def _unbounded(self, what: str) -> BudgetError:
        return BudgetError(
            "limits.max_cost",
            expected="requests whose cost has an upper bound",
            found=f"{what}, of a model without a price or without a limit of output tokens",
            remedy="State its prices and max_tokens, or take limits.max_cost away; docs/guide/costs.md.",
        )

    def _too_much(self, most: float, what: str) -> BudgetError:
        parts = [f"{dollars(self.spent)} spent"]
        if self.held:
            parts.append(f"{dollars(self.held)} held for sendings whose cost is unknown")
        if self.reserved:
            parts.append(f"{dollars(self.reserved)} reserved for calls in flight")
        return BudgetError(
            "limits.max_cost",
            expected=f"room for the next request within {dollars(self.max_cost or 0.0)}",
            found=f"{', '.join(parts)}, and {dollars(most)} that {what} needs at most",
            remedy="Raise limits.max_cost and run the same command again: what is answered is kept and not paid twice.",
        )


def dollars(amount: float) -> str:
    """US dollars with as many digits as tell it from nothing."""
    return f"${amount:.2f}" if amount >= 1 or amount == 0 else f"${amount:.6f}".rstrip("0")
