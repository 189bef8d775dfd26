"""The measurement version: rules whose change makes old and new rows incomparable, so that it changes the protocol.

Raise a number when the rule's result can change for some input; a refactoring that cannot change a result keeps it.
"""

from __future__ import annotations

from typing import Final

REQUEST_NORMALISER: Final = 2
"""How a request becomes its key."""
RESPONSE_MAPPING: Final = 2
"""How what a server sends becomes a response: its text, its class, its counts."""
EXTRACTOR: Final = 1
CHECKER: Final = 4
SUPERVISOR: Final = 5
ORACLE: Final = 1


def measurement_version() -> dict[str, int]:
    """The versions that the protocol digest covers."""
    return {
        "request_normaliser": REQUEST_NORMALISER,
        "response_mapping": RESPONSE_MAPPING,
        "extractor": EXTRACTOR,
        "checker": CHECKER,
        "supervisor": SUPERVISOR,
        "oracle": ORACLE,
    }
