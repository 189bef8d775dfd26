"""The catalog: one DuckDB file of views over everything that is sealed and whole in a store, rebuilt whenever that has changed.

It is built under a temporary name and renamed, so that readers in other processes see the old one or the new one, whole. Readers
attach it to a connection of their own: a second `duckdb.connect` of the same path in one process would get the file that the
first one opened, even after a rebuild.

It keeps the digest of every file that it was made from, with the file's size, times and inode: a reader compares those, and a
rebuild reads only the files where they differ.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from evalnoise.store.digests import SEEN_SCHEMA, Digests, Seen, seen_of, unchanged
from evalnoise.store.files import TEMPORARY, remove_stale, writing
from evalnoise.store.snapshot import Entry, fingerprint, snapshot
from evalnoise.store.store import Store
from schemas.columns import Table
from schemas.errors import StoreError
from schemas.macros import load_macros
from schemas.tables import TABLES
from schemas.views import INTEGER_KEYS, load_views, reader_columns, sql_type

CATALOG_FILE = "evalnoise.duckdb"
_NAME = "evalnoise"
_FORMAT = 3
"""Raised when the catalog is laid out otherwise, so that an older file is rebuilt."""
_STORAGE = "v1.0.0"
"""DuckDB's oldest layout of a file that holds all of it: an analyst's own DuckDB is often older than the library here."""
_ATTEMPTS = 5
_PROBE = """
SELECT version, (SELECT count(DISTINCT p) FROM protocols AS p), (SELECT count(DISTINCT f) FROM partitions AS f) FROM catalog_info
"""
"""Reads every block of the catalog's own tables, because DuckDB finds a damaged block only when it reads it."""
_FILES = f"SELECT {', '.join(SEEN_SCHEMA.names)} FROM catalog_files"  # noqa: S608 - names of our own
_FRAMES: dict[str, bytes] = {}
"""By the code that it was made from: the file of a catalog over no store at all. Most of a build's time goes into binding views."""


def connect(store: str | Path) -> duckdb.DuckDBPyConnection:
    """A connection that reads every view of a store; the catalog is rebuilt first if it is missing, damaged or out of date.

    It is out of date when a manifest has moved on, or a file that it was made from looks otherwise than it did.

    Several processes may connect while a run writes. Each connection sees the store as it was when it connected.

    Args:
        store: The store's folder.

    Raises:
        StoreError: The folder is no store, or its files cannot be read.
    """
    root = _existing(store)
    seen: set[str] = set()
    for _ in range(_ATTEMPTS):
        # Any state of the store since this call began will do: a run that seals all the time must not keep readers waiting.
        seen.add(_version(root))
        connection = _open(root, seen)
        if connection is not None:
            return connection
        try:
            seen.add(_build(root))
        except StoreError:
            break
    # A store that cannot be written can still be read: the same views, in memory. Damage raises here as it did above.
    connection = duckdb.connect()
    try:
        _settings(connection)
        _frame(connection)
        _define(connection, root, _version(root))
    except BaseException:
        connection.close()
        raise
    return connection


def build_catalog(root: Path) -> Path:
    """Build the catalog of a store and put it in the place of the old one.

    Sealed files are checked against their digests; those that have not changed since the last catalog are not read again. A
    protocol that is damaged is listed in `protocols` with its problem, and does not hide the others.

    Raises:
        StoreError: The folder is no store, or the catalog cannot be written.
    """
    root = _existing(root)
    _build(root)
    return root / CATALOG_FILE


def _build(root: Path) -> str:
    """Build the catalog; returns its version."""
    path = root / CATALOG_FILE
    remove_stale(root)
    temporary = root / f".{os.getpid()}-{uuid.uuid4().hex}{TEMPORARY}"
    try:
        # The version is taken before the manifests are read: what is sealed in between makes the catalog older, never newer.
        version = _version(root)
        try:
            with closing(duckdb.connect()) as connection:
                _settings(connection)
                _write_frame(connection, temporary)
                with _writable(connection, temporary):
                    _define(connection, root, version)
        except duckdb.Error as error:
            raise _unwritable(path, error) from None
        with writing(path):
            temporary.replace(path)
    finally:
        for leftover in (temporary, temporary.with_name(f"{temporary.name}.wal")):
            with suppress(OSError):
                leftover.unlink(missing_ok=True)
    return version


def _write_frame(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Every view and macro over tables without a file: the same for each store, so that a process binds them once."""
    code = _code()
    if code not in _FRAMES:
        with _writable(connection, path):
            _frame(connection)
        _FRAMES[code] = path.read_bytes()
    else:
        with writing(path):
            path.write_bytes(_FRAMES[code])


@contextmanager
def _writable(connection: duckdb.DuckDBPyConnection, path: Path) -> Iterator[None]:
    """Within it the connection writes to this file, which is made if it is not there and is whole by itself afterwards."""
    connection.execute(f"ATTACH {_literal(path)} AS {_NAME} (STORAGE_VERSION '{_STORAGE}')")
    connection.execute(f"USE {_NAME}")
    yield
    # Writes what is still in the log beside the file.
    connection.execute("USE memory")
    connection.execute(f"DETACH {_NAME}")


def _existing(store: str | Path) -> Path:
    root = Store.open(store, create=False).root
    if not (root / "studies").is_dir() and not (root / "protocols").is_dir():
        remedy = "Name the right folder with --store or EVALNOISE_STORE, or run a study first."
        raise StoreError(str(root), expected="a store with at least one study", found="a folder without any", remedy=remedy)
    return root


def _version(root: Path) -> str:
    """What the catalog depends on: the code's views and tables, where the store lies, and the state of every manifest."""
    return _digest([_code(), str(root), fingerprint(root)])


def _code() -> str:
    """What every catalog that this code makes has in common."""
    made_of = [str(_FORMAT)]
    made_of += [view.sql for view in load_views()]
    made_of += [macro.sql for macro in load_macros()]
    made_of += [f"{table.name} {column.name} {sql_type(column)}" for table in TABLES.values() for column in reader_columns(table)]
    return _digest(made_of)


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _open(root: Path, versions: set[str]) -> duckdb.DuckDBPyConnection | None:
    """The catalog, attached read-only; None unless it is whole, of one of the versions, and its files look as they did."""
    connection = _attached(root)
    if connection is None:
        return None
    try:
        found = connection.execute(_PROBE).fetchall()
        if found and found[0][0] in versions and unchanged(root, seen_of(connection.execute(_FILES).fetchall())):
            return connection
    except duckdb.Error:
        pass
    connection.close()
    return None


def _remembered(root: Path) -> dict[str, Seen]:
    """What the catalog keeps of its files, even if it is out of date; nothing if it cannot be read."""
    connection = _attached(root)
    if connection is None:
        return {}
    with closing(connection):
        try:
            return seen_of(connection.execute(_FILES).fetchall())
        except duckdb.Error:
            return {}


def _attached(root: Path) -> duckdb.DuckDBPyConnection | None:
    """A connection with the catalog attached read-only, if that is there and a database."""
    path = root / CATALOG_FILE
    if not path.is_file():
        return None
    connection = duckdb.connect()
    try:
        _settings(connection)
        connection.execute(f"ATTACH {_literal(path)} AS {_NAME} (READ_ONLY)")
        connection.execute(f"USE {_NAME}")
    except duckdb.Error:
        connection.close()
        return None
    return connection


def _settings(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET TimeZone = 'UTC'")
    # Only used by queries that outgrow the memory; the default of a connection without a file is the working directory.
    spill = Path(tempfile.gettempdir()) / f"evalnoise-duckdb-{os.getpid()}"
    connection.execute(f"SET temp_directory = {_literal(spill)}")


def _frame(connection: duckdb.DuckDBPyConnection) -> None:
    """Make every view, macro and table in an empty database, as for a store without a file."""
    # In one transaction, which spares a write to the disk for each.
    connection.execute("BEGIN")
    _create(connection, [table_view(table, [], hive=True) for table in TABLES.values()])
    _create(connection, [*(view.sql for view in load_views()), *(macro.sql for macro in load_macros())])
    connection.execute("COMMIT")


def _define(connection: duckdb.DuckDBPyConnection, root: Path, version: str) -> None:
    """Fill a frame with what a store holds."""
    known = _remembered(root)
    digests = Digests(root, known)
    entries = snapshot(root, digests)
    try:
        _create(connection, _table_views(root, entries))
    except duckdb.Error:
        # A file that a run has just replaced or moved to quarantine: look again.
        digests = Digests(root, known)
        entries = snapshot(root, digests)
        try:
            _create(connection, _table_views(root, entries))
        except duckdb.Error as error:
            remedy = "Run the study again with the same command, then `evalnoise catalog`."
            raise StoreError(str(root), expected="sealed files that DuckDB can read", found=str(error), remedy=remedy) from None
    connection.execute("BEGIN")
    _fill(connection, entries)
    connection.register("new_files", digests.table())
    connection.execute("CREATE TABLE catalog_files AS SELECT * FROM new_files")
    connection.unregister("new_files")
    connection.execute("CREATE TABLE catalog_info (version VARCHAR, root VARCHAR)")
    connection.execute("INSERT INTO catalog_info VALUES (?, ?)", [version, str(root)])
    connection.execute("COMMIT")


def _create(connection: duckdb.DuckDBPyConnection, statements: list[str]) -> None:
    for statement in statements:
        connection.execute(statement)


def _fill(connection: duckdb.DuckDBPyConnection, entries: list[Entry]) -> None:
    protocols = [entry.row() for entry in entries]
    partitions = [row for entry in entries for row in entry.partition_rows()]
    for table, rows in (("protocols", protocols), ("partitions", partitions)):
        if rows:
            # Through Arrow: row by row would take a millisecond each.
            connection.register("new_rows", pa.Table.from_pylist(rows))
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM new_rows")  # noqa: S608 - the names are above
            connection.unregister("new_rows")


def _table_views(root: Path, entries: list[Entry]) -> list[str]:
    """One statement per table of `schemas.tables`."""
    # DuckDB reads every `name=value` of a path as a column that overrides the file's own, also those above the store.
    hive = not any("=" in part for part in root.parts)
    statements = []
    for table in TABLES.values():
        paths = [entry.path / file.path for entry in entries for file in entry.files if file.table == table.name]
        statements.append(table_view(table, paths, hive=hive))
    return statements


def table_view(table: Table, paths: list[Path], *, hive: bool) -> str:
    """The statement that makes a table's view over these files; it has every column even without a file.

    Args:
        table: The table.
        paths: Its files.
        hive: Whether DuckDB's own reading of `name=value` folders can be used; otherwise the names are taken from the paths' ends.
    """
    columns = reader_columns(table)
    # The empty branch adds a column that is younger than every file, and types where there is no file.
    nothing = ", ".join(f"NULL::{sql_type(column)} AS {_quoted(column.name)}" for column in columns)
    source = f"SELECT {nothing} WHERE false"
    if paths:
        names, options = "*", "hive_partitioning = false"
        key_types = {key: "BIGINT" if key in INTEGER_KEYS else "VARCHAR" for key in table.partition}
        if key_types and hive:
            options = f"hive_partitioning = true, hive_types = {{{', '.join(f'{key}: {kind}' for key, kind in key_types.items())}}}"
        elif key_types:
            options = "hive_partitioning = false, filename = '_path'"
            taken = [
                f"regexp_extract(_path, {_literal(_pattern(table, key))}, 1)::{kind} AS {key}" for key, kind in key_types.items()
            ]
            names = f"* EXCLUDE (_path), {', '.join(taken)}"
        files = ", ".join(_literal(path) for path in paths)
        # Every name and value below is quoted above or comes from `schemas.tables`.
        read = f"SELECT {names} FROM read_parquet([{files}], {options}, union_by_name = true)"  # noqa: S608
        source = f"{read} UNION ALL BY NAME {source}"
    shown = ", ".join(_quoted(column.name) for column in columns)
    return f"CREATE OR REPLACE VIEW {_quoted(table.name)} AS SELECT {shown} FROM ({source})"  # noqa: S608 - quoted as well


def _pattern(table: Table, key: str) -> str:
    """A regular expression for the value of a partition key in the end of a path, whatever stands above the store."""
    folders = [f"{name}=([^/]*)" if name == key else f"{name}=[^/]*" for name in table.partition]
    return "/" + "/".join(folders) + "/[^/]*$"


def _literal(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unwritable(path: Path, error: duckdb.Error) -> StoreError:
    remedy = "Give this user the right to write there, or free some space; nothing that was sealed is lost."
    return StoreError(str(path), expected="a place that can be written", found=str(error), remedy=remedy)
