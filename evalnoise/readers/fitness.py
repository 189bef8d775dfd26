"""What speaks against using an arm's numbers for a decision: an unfinished protocol, and checks that block."""

from __future__ import annotations

from typing import Any, Final

from evalnoise.readers.arms import Arm

_BLOCKING: Final = """
SELECT sentence FROM checks
WHERE study = $study AND protocol = $protocol AND blocks
    AND stack IN ('', $stack) AND condition IN ('', $condition)
ORDER BY "check", stack, condition, sentence
"""


def unfit_for_decisions(connection: Any, arm: Arm, name: str) -> list[str]:
    """Sentences, each beginning with the name that the arm goes by; empty where nothing speaks against it.

    Checks about another stack or condition of the protocol do not count.
    """
    cells = arm.cells
    place = (cells.study, cells.protocol, cells.stack, cells.condition)
    return unfit_place(connection, place, name, complete=arm.complete)


def unfit_place(connection: Any, place: tuple[str, str, str, str], name: str, *, complete: bool) -> list[str]:
    """The same of a study, protocol, stack and condition, which may be a judge's."""
    wanted = dict(zip(("study", "protocol", "stack", "condition"), place, strict=True))
    found = [f"{name}: {sentence}" for (sentence,) in connection.execute(_BLOCKING, wanted).fetchall()]
    if not complete:
        found.insert(0, f"{name}: its protocol is not complete, so its numbers may still change")
    return found
