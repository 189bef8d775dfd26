"""Opens what a study's provider `recording` names: a recording's folder, or a file of generations that is imported on the fly."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from evalnoise.recordings.formats.generations import read_generations
from evalnoise.recordings.recording import Order, Pairing, Recording
from evalnoise.recordings.row import numbered
from evalnoise.store.recordings import RecordingFolder, is_folder
from schemas.errors import RecordingDigestError, RequestNormaliserError, ResponseMappingError, StudyError
from schemas.provider import RecordingProvider as RecordingSpec
from schemas.recording import RecordingManifest
from schemas.versions import REQUEST_NORMALISER, RESPONSE_MAPPING


def open_recording(spec: RecordingSpec, *, wanted: Collection[str] | None = None) -> Recording:
    """The recording, paired as the study says.

    Args:
        spec: Where it is, whose requests are made, how it is paired, which digest it must have.
        wanted: Of a file, the tasks whose texts are kept; None: all.

    Raises:
        RecordingFormatError: A folder that holds no recording of this format.
        RecordingDigestError: Another recording than the one that is pinned, or a damaged one.
        RequestNormaliserError, ResponseMappingError: It was made by other rules.
        DataError: A file that is missing, torn or uneven.
        StudyError: `of` is missing, or given where nobody knows what was asked.
    """
    path = Path(spec.path)
    recording = _folder(RecordingFolder(path), spec) if is_folder(path) else _file(path, spec, wanted)
    if spec.of is None and recording.keyed:
        raise StudyError(
            "provider.of",
            expected=f"whose requests the stack makes, because {path} is looked up by request",
            found="nothing",
            remedy="Give the options of the provider that was recorded, for instance `of: {name: openai, temperature: 0.7}`.",
        )
    if spec.of is not None and not recording.keyed:
        raise StudyError(
            "provider.of",
            expected=f"nothing, because nobody knows what was asked for the answers in {path}",
            found=spec.of.name,
            remedy="Take `of` away; a changed prompt cannot be seen in such a recording.",
        )
    return recording


def recorded_order(spec: RecordingSpec) -> Order:
    """Whether the recording's occurrences are in the order of time: a folder says it itself, for a file the study does.

    Raises RecordingFormatError for a folder that holds no recording of this format.
    """
    path = Path(spec.path)
    return RecordingFolder(path).manifest.order if is_folder(path) else spec.order


def check_versions(path: Path, manifest: RecordingManifest) -> None:
    """Raise RequestNormaliserError or ResponseMappingError for a recording that was made by other rules than this version's."""
    if manifest.request_normaliser not in (None, REQUEST_NORMALISER):
        raise RequestNormaliserError(
            str(path),
            expected=f"request keys of version {REQUEST_NORMALISER} of the normaliser",
            found=f"version {manifest.request_normaliser}",
            remedy="The same request has another key now: record or import anew, or use the version of evalnoise that made it.",
        )
    if manifest.response_mapping != RESPONSE_MAPPING:
        raise ResponseMappingError(
            str(path),
            expected=f"responses that version {RESPONSE_MAPPING} of the mapping read from their bodies",
            found=f"version {manifest.response_mapping}",
            remedy="The same body may be another response now: record or import anew, or use the version that made it.",
        )


def _folder(folder: RecordingFolder, spec: RecordingSpec) -> Recording:
    manifest = folder.manifest
    if spec.sha256 is not None and spec.sha256.lower() != manifest.digest:
        raise RecordingDigestError(
            str(folder.path),
            expected=f"the digest {spec.sha256.lower()}, which the study names",
            found=manifest.digest,
            remedy="Use the recording that was meant, or correct `sha256` if another one is meant now.",
        )
    check_versions(folder.path, manifest)
    return Recording(
        folder.read(),
        f"recording {folder.path.name} ({manifest.digest[:12]})",
        keyed=manifest.keyed,
        order=manifest.order,
        sha256=manifest.digest,
        size=manifest.contents_size,
        not_asked=frozenset(manifest.not_asked),
        pairing=_pairing(spec),
    )


def _file(path: Path, spec: RecordingSpec, wanted: Collection[str] | None) -> Recording:
    contents = read_generations(path, wanted=wanted)
    (source,) = contents.sources
    if spec.sha256 is not None and spec.sha256.lower() != source["sha256"]:
        raise RecordingDigestError(
            str(path),
            expected=f"SHA-256 {spec.sha256.lower()}, which the study names",
            found=source["sha256"],
            remedy="Use the file that was meant, or correct `sha256` if another one is meant now.",
        )
    return Recording(
        numbered(contents.rows, source=str(path)),
        str(path),
        keyed=False,
        order=spec.order,
        sha256=source["sha256"],
        size=source["size"],
        pairing=_pairing(spec),
    )


def _pairing(spec: RecordingSpec) -> Pairing:
    return Pairing(spec.pairing, spec.occurrence)


def pinned_still(recording: Recording, sha256: str) -> Recording:
    """The recording, if it is the one that the protocol pinned. Raises RecordingDigestError."""
    if recording.sha256 != sha256:
        raise RecordingDigestError(
            recording.source,
            expected=f"the recording {sha256[:12]}, which the protocol pins",
            found=recording.sha256[:12],
            remedy="It was changed while the study ran: restore it, and give the same command again.",
        )
    return recording
