"""What a table and a column are; `schemas.tables` declares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    type: pa.DataType
    doc: str
    nullable: bool = False
    measured: bool = False
    """True for what a repeat of the same study cannot reproduce: times, CPU, memory, load, containers, provider ids."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its grain, where its partitions lie, and its columns."""

    name: str
    grain: str
    partition: tuple[str, ...]
    """Hive keys in the path, in order. `replicate` and `repeat` are integers, the others text."""
    sort: tuple[str, ...]
    """Columns that order the rows of a file."""
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of a file, with docs, marks and version in its metadata."""
        fields = [pa.field(c.name, c.type, c.nullable, {"doc": c.doc, "measured": str(c.measured).lower()}) for c in self.columns]
        return pa.schema(fields, {"evalnoise.table": self.name, "evalnoise.schema_version": str(SCHEMA_VERSION)})

    @property
    def stable_columns(self) -> tuple[str, ...]:
        """Names of the columns that are the same bytes in every repeat."""
        return tuple(c.name for c in self.columns if not c.measured)
