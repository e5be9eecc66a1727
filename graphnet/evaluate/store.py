"""Where results are kept: SQLite in the results folder (or another database by URL), one row per result."""

from __future__ import annotations

import os
import random
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from graphnet.errors import StoreError
from graphnet.evaluate.environment import merged
from graphnet.evaluate.records import RESULT_FORMAT, Environment, Result

SCHEMA_VERSION = 1
FILE_NAME = "results.db"
BUSY_SECONDS = 30
EXPORT_FORMAT = "graphnet-results/1"

_metadata = sa.MetaData()
_meta = sa.Table("meta", _metadata, sa.Column("name", sa.String, primary_key=True), sa.Column("value", sa.String))
_runs = sa.Table(
    "runs", _metadata,
    sa.Column("run_id", sa.String, primary_key=True),
    sa.Column("started", sa.String, nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
)  # fmt: skip
_environments = sa.Table(
    "environments", _metadata,
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)  # fmt: skip
_results = sa.Table(
    "results", _metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.String, sa.ForeignKey("runs.run_id"), nullable=False),
    sa.Column("job_key", sa.String, nullable=False, index=True),
    sa.Column("graph_id", sa.String, nullable=False, index=True),
    sa.Column("graph", sa.String, nullable=False, index=True),
    sa.Column("subset", sa.String, nullable=False),
    sa.Column("compiler", sa.String, nullable=False, index=True),
    sa.Column("variant", sa.String, nullable=False),
    sa.Column("verdict", sa.String, nullable=False, index=True),
    sa.Column("stage", sa.String),
    sa.Column("environment", sa.String, nullable=False),
    sa.Column("started", sa.String, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("run_id", "job_key"),
)  # fmt: skip


_VERSION = sa.select(_meta.c.value).where(_meta.c.name == "schema")


class ResultSet(msgspec.Struct, frozen=True, kw_only=True, tag=EXPORT_FORMAT, tag_field="format"):
    """A set of results as one JSON file."""

    environments: tuple[Environment, ...] = ()
    results: tuple[Result, ...] = ()


class Store:
    """Results of any number of runs. Every `add` is one transaction: what was added stays, whatever comes next."""

    def __init__(self, where: str | os.PathLike[str], *, create: bool = True) -> None:
        """`where` is a folder, a `.db` file or a database URL; without `create` to read only. Raises StoreError."""
        self.where = os.fspath(where)
        url = sa.make_url(_url(self.where, create))
        file = url.database if url.get_backend_name() == "sqlite" else None
        if file and not create:
            self._engine = sa.create_engine(url, creator=lambda: _open_to_read(file), poolclass=sa.NullPool)
        else:
            self._engine = sa.create_engine(url)
            if file:
                sa.event.listen(self._engine, "connect", _configure_sqlite)
        with self._guard("open"):
            if create:
                self._create()
            self._check_version()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Give back the connections."""
        self._engine.dispose()

    def begin_run(self, settings: dict[str, Any]) -> str:
        """A new run's id; `settings` are what a resumed run must have in common with it. Raises StoreError."""
        started = datetime.now(UTC)
        run_id = f"{started:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        with self._guard("write to"), self._engine.begin() as connection:
            connection.execute(_runs.insert().values(run_id=run_id, started=started.isoformat(), settings=settings))
        return run_id

    def last_run(self) -> tuple[str, dict[str, Any]] | None:
        """Id and settings of the newest run that was begun here (not imported), if there is one. Raises StoreError."""
        query = sa.select(_runs.c.run_id, _runs.c.settings).order_by(_runs.c.started.desc())
        with self._guard("read"), self._engine.connect() as connection:
            row = next((row for row in connection.execute(query) if row.settings), None)
        return (row.run_id, dict(row.settings)) if row else None

    def runs(self) -> list[str]:
        """Ids of all runs, the oldest first. Raises StoreError."""
        query = sa.select(_runs.c.run_id).order_by(_runs.c.started)
        with self._guard("read"), self._engine.connect() as connection:
            return list(connection.execute(query).scalars())

    def add(self, *results: Result) -> None:
        """Keep results, all or none. Raises StoreError: the disk is full, or the run has one of such a job already."""
        rows = [
            {
                "run_id": result.run_id, "job_key": result.job_key, "graph_id": result.graph_id, "graph": result.graph,
                "subset": result.subset, "compiler": result.compiler, "variant": "+".join(result.passes),
                "verdict": result.verdict, "stage": result.stage, "environment": result.environment,
                "started": result.started, "data": msgspec.json.encode(result),
            }
            for result in results
        ]  # fmt: skip
        with self._guard("write to"), self._engine.begin() as connection:
            connection.execute(_results.insert(), rows)

    def add_environment(self, environment: Environment) -> None:
        """Keep the facts of a machine, once, with the highest peaks and the newest floors told. Raises StoreError."""
        mine = _environments.c.key == environment.key
        with self._guard("write to"), self._engine.begin() as connection:
            row = connection.execute(sa.select(_environments.c.data).where(mine)).first()
            if row is None:
                data = msgspec.json.encode(environment)
                connection.execute(_environments.insert().values(key=environment.key, data=data))
                return
            known = msgspec.json.decode(row.data, type=Environment)
            both = merged(known, environment)
            if both != known:
                data = msgspec.json.encode(both)
                connection.execute(_environments.update().where(mine).values(data=data))

    def environments(self) -> list[Environment]:
        """Machines that results come from. Raises StoreError."""
        with self._guard("read"), self._engine.connect() as connection:
            rows = connection.execute(sa.select(_environments.c.data)).all()
            return [msgspec.json.decode(row.data, type=Environment) for row in rows]

    def find(self, run_id: str, job_key: str) -> Result | None:
        """The result of a job in a run. Raises StoreError."""
        query = sa.select(_results.c.data).where(_results.c.run_id == run_id, _results.c.job_key == job_key)
        with self._guard("read"), self._engine.connect() as connection:
            row = connection.execute(query).first()
            return decode_result(row.data) if row else None

    def results(self, run_id: str | None = None) -> list[Result]:
        """Results of a run in the order of their making; without `run_id` the newest of every job over all runs.

        Raises StoreError.
        """
        query = sa.select(_results.c.data)
        if run_id is None:
            newest = sa.select(sa.func.max(_results.c.id)).group_by(_results.c.job_key)
            query = query.where(_results.c.id.in_(newest))
        else:
            query = query.where(_results.c.run_id == run_id)
        with self._guard("read"), self._engine.connect() as connection:
            return [decode_result(row.data) for row in connection.execute(query.order_by(_results.c.id))]

    def add_all(self, results: Sequence[Result], environments: Sequence[Environment] = ()) -> None:
        """Import a set as it is, all or nothing; runs that are not known yet are made. Raises StoreError."""
        for environment in environments:
            self.add_environment(environment)
        with self._guard("write to"), self._engine.begin() as connection:
            known = {row.run_id for row in connection.execute(sa.select(_runs.c.run_id))}
            for run_id in dict.fromkeys(result.run_id for result in results):
                if run_id not in known:
                    started = min(result.started for result in results if result.run_id == run_id)
                    connection.execute(_runs.insert().values(run_id=run_id, started=started, settings={}))
        for result in results:
            if self.find(result.run_id, result.job_key) is None:
                self.add(result)

    def _create(self) -> None:
        """Tables and version, in one transaction: of processes that open a new store at once, one makes it."""
        with self._engine.begin() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")  # its look at what is there comes under the lock
            _metadata.create_all(connection)
            if connection.execute(_VERSION).first() is None:
                connection.execute(_meta.insert().values(name="schema", value=str(SCHEMA_VERSION)))

    def _check_version(self) -> None:
        with self._engine.connect() as connection:
            row = connection.execute(_VERSION).first()
        if row is None:
            raise StoreError(f"{self.where} is no results store")
        if int(row.value) > SCHEMA_VERSION:
            raise StoreError(f"{self.where} was written by a newer version; upgrade graphnet-eval to read it")

    @contextmanager
    def _guard(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError) as error:
            cause = getattr(error, "orig", None) or error
            if getattr(cause, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise StoreError(
                    f"cannot {doing} the results store {self.where}: {cause}."
                    " It is damaged, or no results store: bring back a copy, or choose another folder"
                ) from error
            raise StoreError(
                f"cannot {doing} the results store {self.where}: {cause}."
                " Results that were there before are intact; make room or fix access, then go on with --resume"
            ) from error


def decode_result(data: bytes) -> Result:
    """A stored result; those of older versions are upgraded (there is none yet). Raises StoreError."""
    try:
        return msgspec.json.decode(data, type=Result)
    except msgspec.DecodeError as error:
        tag = _format_of(data)
        if tag not in ("", RESULT_FORMAT):
            raise StoreError(f"a result of format '{tag}', this version reads '{RESULT_FORMAT}': upgrade") from error
        raise StoreError(f"a stored result is damaged: {error}") from error


def export_json(results: Sequence[Result], environments: Sequence[Environment]) -> bytes:
    """One JSON document, readable by `import_json` and by others."""
    content = ResultSet(environments=tuple(environments), results=tuple(results))
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def import_json(data: bytes) -> ResultSet:
    """What `export_json` wrote. Raises StoreError."""
    tag = _format_of(data)
    if tag != EXPORT_FORMAT:
        raise StoreError(f"not a set of results: its format is '{tag}', not '{EXPORT_FORMAT}'")
    try:
        return msgspec.json.decode(data, type=ResultSet)
    except msgspec.DecodeError as error:
        raise StoreError(f"a damaged set of results: {error}") from error


def load_set(where: str | os.PathLike[str]) -> ResultSet:
    """The newest result of every job, and the machines: of a results folder, `.db` file, database URL or `.json` file.

    Raises StoreError.
    """
    place = os.fspath(where)
    if not _is_file_of_json(place):
        with Store(place, create=False) as store:
            return ResultSet(environments=tuple(store.environments()), results=tuple(store.results()))
    found = _read_json(place)
    newest = {result.job_key or index: result for index, result in enumerate(found.results)}
    return msgspec.structs.replace(found, results=tuple(newest.values()))


def load_runs(where: str | os.PathLike[str]) -> Iterator[ResultSet]:
    """Every run of such a place, one after the other, or of all the places in a folder that is none itself.

    Raises StoreError.
    """
    place = os.fspath(where)
    if _is_file_of_json(place):
        yield _read_json(place)
        return
    inside = [] if "://" in place else _places_in(Path(place))
    if inside:
        for found in inside:
            yield from load_runs(found)
        return
    with Store(place, create=False) as store:
        environments = tuple(store.environments())
        for run_id in store.runs():
            yield ResultSet(environments=environments, results=tuple(store.results(run_id)))


def _places_in(folder: Path) -> list[Path]:
    """Results folders and files right in a folder that is no results folder; nothing where it is one, or a file."""
    if not folder.is_dir() or (folder / FILE_NAME).exists():
        return []
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise StoreError(f"cannot read {folder}: {error.strerror or error}") from error
    return [item for item in inside if item.suffix in (".db", ".json") or (item / FILE_NAME).exists()]


def _is_file_of_json(place: str) -> bool:
    return "://" not in place and place.endswith(".json")


def _read_json(place: str) -> ResultSet:
    try:
        return import_json(Path(place).read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {place}: {error.strerror or error}") from error
    except StoreError as error:
        raise StoreError(f"{place}: {error}") from error


class _Tagged(msgspec.Struct):
    format: str = ""


def _format_of(data: bytes) -> str:
    """The format tag of a JSON object; `""` when there is none."""
    try:
        return msgspec.json.decode(data, type=_Tagged).format
    except msgspec.DecodeError:
        return ""


def _url(where: str, create: bool) -> str | sa.URL:
    if "://" in where:
        return where
    file = Path(where)
    if file.suffix != ".db":
        file = file / FILE_NAME
    if create:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the results folder {file.parent}: {error}") from error
    elif not file.is_file():
        raise StoreError(f"no results at {file}; `graphnet evaluate --output {file.parent}` makes them")
    return sa.URL.create("sqlite", database=str(file))


def _open_to_read(file: str) -> sqlite3.Connection:
    """Nothing is written, not even beside the file: it may be in a read-only folder.

    Without a write-ahead log nobody is writing, and the file is all there is (`immutable`); with one, it is read too.
    """
    wal = Path(f"{file}-wal")
    mode = "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"
    return sqlite3.connect(f"{Path(file).resolve().as_uri()}?{mode}", uri=True, check_same_thread=False)


def _configure_sqlite(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
    _keep_a_write_ahead_log(cursor)
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _keep_a_write_ahead_log(cursor: sqlite3.Cursor) -> None:
    """Asks again while others are about to: SQLite does not wait here, whatever `busy_timeout` says."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, 0.02))
