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
    place = {"study": cells.study, "protocol": cells.protocol, "stack": cells.stack, "condition": cells.condition}
    found = [f"{name}: {sentence}" for (sentence,) in connection.execute(_BLOCKING, place).fetchall()]
    if not arm.complete:
        found.insert(0, f"{name}: its protocol is not complete, so its numbers may still change")
    return found
