"""Typed errors: each carries its facts as attributes and says what to do; each has a documented exit code."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line. Documented in docs/guide/exit-codes.md."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    STUDY = 3
    DATA = 4
    LOCKED = 5
    STORE = 6
    EXECUTOR = 7
    PROVIDER = 8
    BLOCKED = 9
    SERVER = 10
    BUDGET = 11
    GATE = 12
    INCONCLUSIVE = 13
    INTERRUPTED = 130


class EvalnoiseError(Exception):
    """An error that a user can act on.

    The message is one paragraph: ``where: expected …, found …. remedy``.
    """

    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, where: str, *, expected: str, found: str, remedy: str) -> None:
        self.where = where
        """The file, row, key or service that the error is about."""
        self.expected = expected
        """What would have been right."""
        self.found = found
        """What was there instead."""
        self.remedy = remedy
        """What the user can do, as a sentence."""
        super().__init__(where, expected, found, remedy)

    def __str__(self) -> str:
        stop = "" if self.found.endswith((".", "?", "!", "…")) else "."
        return f"{self.where}: expected {self.expected}, found {self.found}{stop} {self.remedy}"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        # Keyword-only arguments do not survive the default pickling of exceptions, and Prefect pickles them.
        return _rebuild, (type(self), self.where, self.expected, self.found, self.remedy)


def _rebuild(cls: type[EvalnoiseError], where: str, expected: str, found: str, remedy: str) -> EvalnoiseError:
    return cls(where, expected=expected, found=found, remedy=remedy)


class StudyError(EvalnoiseError):
    """The study file, or a value set on the command line, is not a valid study."""

    exit_code = ExitCode.STUDY


class SuccessorError(StudyError):
    """No protocol in the store can be extended to this study, or asked again under it."""


class DataError(EvalnoiseError):
    """A benchmark or a recording is missing, truncated, altered or malformed."""

    exit_code = ExitCode.DATA


class ReplayMissError(DataError):
    """A replay asked for a response that the recording does not hold. There is no fall-back to a live call."""


class ReplayExhaustedError(ReplayMissError):
    """A replay asked a request more often than it was recorded, or tried again where the recorded cell did not."""


class ReplayOrderError(DataError):
    """A request that is paired by occurrence was recorded, but another cell asked it: the order of requests has changed."""


class RecordingDigestError(DataError):
    """A recording is not the one that was pinned, or not what its own manifest says."""


class RecordingFormatError(DataError):
    """A folder holds no recording of the format that this version reads."""


class RequestNormaliserError(DataError):
    """A recording's request keys were made by another version of the request normaliser."""


class ResponseMappingError(DataError):
    """A recording's responses were read from their bodies by another version of that rule."""


class LockedError(EvalnoiseError):
    """Another run holds the study's lock."""

    exit_code = ExitCode.LOCKED


class StoreError(EvalnoiseError):
    """A sealed file, a journal, a manifest or the catalog is damaged, missing or in the way."""

    exit_code = ExitCode.STORE


class ExecutorError(EvalnoiseError):
    """No way to verify candidates: no engine, no image, a refusal to run them without a sandbox, or another's checker raises."""

    exit_code = ExitCode.EXECUTOR


class ProviderError(EvalnoiseError):
    """A provider cannot be used: no key, no permission, or calls that keep failing."""

    exit_code = ExitCode.PROVIDER


class UnfinishedShardError(ProviderError):
    """A service failed for some cells of a shard. Nothing of it is sealed; the run tries it once more, later."""


class BlockedError(EvalnoiseError):
    """The run ended, but something makes its numbers unfit for use: a blocking check or missing cells."""

    exit_code = ExitCode.BLOCKED


class ShareError(BlockedError):
    """So many answers of one class came that the run stopped before it asked for more; its numbers would be unfit for use."""


class ServerError(EvalnoiseError):
    """The Prefect server could not be started or reached."""

    exit_code = ExitCode.SERVER


class BudgetError(EvalnoiseError):
    """The next request could cost more than `limits.max_cost` leaves, or nobody knows what it could cost."""

    exit_code = ExitCode.BUDGET
