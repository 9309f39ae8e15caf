"""The archive as a Delta table: its Parquet files are named by a Delta log too, so that Trino and others read it.

The manifest stays the truth. After every commit the log is brought up to it in one transaction, which carries the
commit's number; whatever was interrupted before is made good by the next. No file is written twice.
"""

import importlib.util
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from replicator.errors import InputError, ReplicatorError
from replicator.spark.archive_files.manifest import Archive, ArchivedFile
from replicator.spark.archive_files.remote import SCHEMES, s3_setting
from replicator.spark.session.java import SparkUnavailableError

APP = "replicator-archive"
"""Under this name the log keeps the number of the manifest's commit that it is brought up to."""
FOLDER = "_delta_log"
PARTITIONED_BY = ("topic", "date", "hour")

_ATTEMPTS = 5
_LOCAL = "file"
_OTHERS = ("gs", "abfs", "abfss")
_NULLABLE: Mapping[str, object] = {"nullable": True, "metadata": {}}
_HEADER = {
    "type": "struct",
    "fields": [
        {"name": "key", "type": "string", **_NULLABLE},
        {"name": "value", "type": "binary", **_NULLABLE},
    ],
}
_TYPES: Mapping[str, object] = {
    "key": "binary",
    "value": "binary",
    "partition": "integer",
    "offset": "long",
    "timestamp": "timestamp",
    "timestampType": "integer",
    "headers": {"type": "array", "elementType": _HEADER, "containsNull": True},
    "leaderEpoch": "integer",
    "topic": "string",
    "date": "string",
    "hour": "string",
}


def require_delta(root: str) -> None:
    """Checks that the Delta library is there.

    Raises:
        SparkUnavailableError: the extra is missing.
    """
    if importlib.util.find_spec("deltalake") is None:
        raise SparkUnavailableError(
            "the archive is a Delta table, and deltalake cannot be imported",
            subject=root,
            remedy="Install the extra: `pip install 'replicator[spark,delta]'`.",
        )


class DeltaLog:
    """The Delta log of one archive; only for the command that writes the archive."""

    def __init__(self, root: str, conf: Mapping[str, str]) -> None:
        """Asks nothing yet.

        Args:
            root: the archive, as ``Files.root`` has it.
            conf: the settings of the session; those of s3a hold for this log too.

        Raises:
            InputError: this file system has no Delta log here.
            SparkUnavailableError: the extra is missing.
        """
        require_delta(root)
        import deltalake

        self._library: Any = deltalake
        self._root = root
        self._url, self._options = _place(root, conf)

    def create(self) -> None:
        """Makes an empty table unless there is one.

        Raises:
            ReplicatorError: the folder cannot be written.
        """
        schema = {"type": "struct", "fields": _fields()}
        try:
            self._library.DeltaTable.create(
                self._url,
                self._library.Schema.from_json(json.dumps(schema)),
                mode="ignore",
                partition_by=list(PARTITIONED_BY),
                description="Kafka records, archived by replicator",
                storage_options=self._options,
            )
        except (self._library.exceptions.DeltaError, OSError) as error:
            raise self._failed(error) from error

    def bring_up_to(self, archive: Archive, *, at_ms: int) -> None:
        """Makes the table hold exactly the files that the manifest names.

        One transaction; none where the log is there already. A command that lost the archive to another
        meanwhile changes nothing.

        Raises:
            ReplicatorError: the log cannot be read or written; the next command makes it good.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                table = self._library.DeltaTable(self._url, storage_options=self._options)
                done = table.transaction_version(APP)
                if done is not None and done > archive.number:
                    return
                held = {row["path"]: row for row in _rows(table.get_add_actions())}
                new = [file for path, file in archive.files.items() if path not in held]
                old = [path for path in held if path not in archive.files]
                if done == archive.number and not new and not old:
                    return
                self._commit(table, archive.number, new, [held[path] for path in old], at_ms)
            except self._library.exceptions.CommitFailedError as error:
                # Somebody else committed in between: it is read again.
                if attempt == _ATTEMPTS:
                    raise self._failed(error) from error
            except (self._library.exceptions.DeltaError, OSError) as error:
                raise self._failed(error) from error
            else:
                return

    def _commit(
        self, table: Any, number: int, new: list[ArchivedFile], old: list[dict[str, Any]],  # noqa: ANN401
        at_ms: int,
    ) -> None:  # fmt: skip
        transaction = self._library.transaction
        # Readers of changes must not take a compaction for new records.
        changes = not old or _counted(new) != sum(row["num_records"] or 0 for row in old)
        added = [
            transaction.AddAction(
                path=file.path, size=file.bytes, partition_values=_folders(file),
                modification_time=at_ms, data_change=changes, stats=_stats(file),
            )
            for file in new
        ]  # fmt: skip
        removed = [
            transaction.RemoveAction(row["path"], changes, at_ms, row["size_bytes"]) for row in old
        ]
        table.create_write_transaction(
            [*added, *removed], "append", table.schema(), list(PARTITIONED_BY),
            commit_properties=self._library.CommitProperties(
                max_commit_retries=0,
                app_transactions=[self._library.Transaction(APP, number)],
            ),
        )  # fmt: skip

    def _failed(self, error: Exception) -> ReplicatorError:
        said = str(error).strip().splitlines()
        return ReplicatorError(
            f"its Delta log could not be brought up to date ({said[0] if said else type(error).__name__})",
            subject=self._root,
            remedy="All committed records are in the archive. Run the command again: it makes the log good.",
        )


def _rows(actions: Any) -> list[dict[str, Any]]:  # noqa: ANN401  an Arrow table of another library
    import pyarrow as pa

    return list(pa.table(actions).to_pylist())


def _counted(files: list[ArchivedFile]) -> int:
    return sum(file.records or 0 for file in files)


def _fields() -> list[dict[str, object]]:
    return [{"name": name, "type": kind, **_NULLABLE} for name, kind in _TYPES.items()]


def _folders(file: ArchivedFile) -> dict[str, str | None]:
    return {"topic": file.topic, "date": file.date, "hour": file.hour}


def _stats(file: ArchivedFile) -> str:
    return json.dumps({} if file.records is None else {"numRecords": file.records})


def _place(root: str, conf: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The table's address and the options of its store, as the Delta library takes them."""
    parts = urlsplit(root)
    if parts.scheme in {"", _LOCAL}:
        return parts.path, {}
    if parts.scheme in _OTHERS:
        return root, {}  # keys are taken from the environment
    if parts.scheme not in SCHEMES:
        raise InputError(
            f"there is no Delta log on {parts.scheme}://",
            subject=root,
            remedy="Write a local path or a URL with s3a://, gs:// or abfss://, or leave --format away.",
        )
    setting = s3_setting(conf, parts.netloc)
    endpoint = setting("endpoint")
    secure = setting("connection.ssl.enabled") != "false"
    if endpoint and "://" not in endpoint:
        endpoint = f"http{'s' if secure else ''}://{endpoint}"
    given = {
        "aws_access_key_id": setting("access.key"),
        "aws_secret_access_key": setting("secret.key"),
        "aws_session_token": setting("session.token"),
        "aws_region": setting("endpoint.region"),
        "aws_endpoint": endpoint,
        "aws_allow_http": "true" if (endpoint or "").startswith("http://") else None,
    }
    return f"s3://{parts.netloc}{parts.path}", {
        name: value for name, value in given.items() if value
    }
