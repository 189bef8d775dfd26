"""A store at one moment, for the catalog: every protocol, how far it is, its sealed files, and what is damaged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalnoise.store.digests import Digests
from evalnoise.store.files import reading
from evalnoise.store.manifest import Manifest, SealedFile
from evalnoise.store.store import SHORT, load_protocol
from evalnoise.store.study import is_complete
from schemas.errors import StoreError
from schemas.protocol import Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """One protocol of one study."""

    path: Path
    study: str
    digest: str
    frozen: dict[str, Any]
    """The manifest's first line; empty if the manifest cannot be read."""
    protocol: Protocol | None
    files: tuple[SealedFile, ...]
    """Sealed files that are there with the bytes that were sealed."""
    n_planned: int
    n_shards: int
    complete: bool
    problem: str
    """What is damaged; empty if nothing is."""

    def row(self) -> dict[str, Any]:
        """The row of the table `protocols`."""
        plan = self.protocol
        lineage = plan and plan.lineage
        return {
            "study": self.study,
            "protocol": self.digest,
            "protocol12": self.digest[:SHORT],
            "benchmark": plan and plan.benchmark,
            "frozen_at": self.frozen.get("frozen_at"),
            "replicates": plan and plan.replicates,
            "task_limit": plan and plan.limit,
            "n_tasks": plan and plan.n_tasks,
            "night": plan and plan.study.get("night"),
            "status": "damaged" if self.problem else "complete" if self.complete else "partial",
            "n_planned": self.n_planned,
            "n_shards": self.n_shards,
            **{name: self.frozen.get(name) for name in ("host", "package_version", "git_commit")},
            "problem": self.problem,
            "predecessor": lineage and lineage.predecessor,
            "why": lineage and lineage.why,
            "blind": None if plan is None else lineage is None,
        }

    def partition_rows(self) -> list[dict[str, Any]]:
        """The rows of the table `partitions`."""
        return [
            {
                "study": self.study,
                "protocol": self.digest,
                "shard": file.shard,
                "table_name": file.table,
                "path": file.path,
                "rows": file.rows,
                "bytes": file.bytes,
                "sha256": file.sha256,
                "inputs": list(file.inputs),
                **{name: file.lineage.get(name) for name in ("package_version", "git_commit", "sealed_at", "inherited_from")},
            }
            for file in self.files
        ]


def fingerprint(root: Path) -> str:
    """The state of every manifest of a store, without reading them."""
    found = []
    for path in sorted(root.glob("studies/*/*/manifest.jsonl")):
        with reading(path):
            facts = path.stat()
        found.append(f"{path.relative_to(root)} {facts.st_ino} {facts.st_size} {facts.st_mtime_ns}")
    return "\n".join(found)


def snapshot(root: Path, digests: Digests) -> list[Entry]:
    """Every protocol of a store, by study and time of freeze; every sealed file is checked against its digest."""
    entries = [entry for path in sorted(root.glob("studies/*/*/manifest.jsonl")) if (entry := _entry(root, path, digests))]
    return sorted(entries, key=lambda entry: (entry.study, str(entry.frozen.get("frozen_at")), entry.digest))


def _entry(root: Path, path: Path, digests: Digests) -> Entry | None:
    folder = path.parent
    manifest = Manifest(path)
    try:
        frozen = manifest.frozen
        planned, live = manifest.planned, manifest.live
    except StoreError as error:
        return Entry(folder, folder.parent.name, folder.name, {}, None, (), 0, 0, complete=False, problem=str(error))
    if frozen is None:
        return None
    protocol, problem = None, ""
    frozen_file = root / "protocols" / f"{frozen['protocol']}.json"
    digests.note(frozen_file)
    try:
        protocol = load_protocol(frozen_file)
    except StoreError as error:
        problem = str(error)
    files = []
    for file in sorted((file for shard in live.values() for file in shard), key=lambda file: file.path):
        damage = _damage(folder / file.path, file, digests)
        if damage:
            problem = problem or damage
        else:
            files.append(file)
    complete = is_complete(planned, live)
    return Entry(
        folder, frozen["study"], frozen["protocol"], frozen, protocol, tuple(files), len(planned), len(live), complete, problem
    )


def _damage(path: Path, file: SealedFile, digests: Digests) -> str:
    try:
        whole = digests.sha256(path) == file.sha256
    except OSError:
        return f"{path} is missing or cannot be read. Run the study again with the same command: the shard is redone."
    return "" if whole else f"{path} is damaged. Run the study again with the same command: the shard is redone."
