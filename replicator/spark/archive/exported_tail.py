"""An exported tail (JSON lines, see ``failover``) as Parquet, for tools that read tables.

It needs pyarrow alone, so nothing of Spark is started for it.
"""

import base64
import json
from pathlib import Path


def tail_to_parquet(file: Path) -> Path | None:
    """Writes the records of ``file`` beside it as Parquet; None where pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return None
    header = pa.struct([("name", pa.string()), ("value", pa.binary())])
    schema = pa.schema(
        [
            ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()),
            ("timestamp", pa.int64()), ("key", pa.binary()), ("value", pa.binary()),
            ("headers", pa.list_(header)),
        ]
    )  # fmt: skip
    with file.open("rb") as lines:
        rows = [
            {
                **record,
                "key": _bytes(record["key"]),
                "value": _bytes(record["value"]),
                "headers": [
                    {"name": one["name"], "value": _bytes(one["value"])}
                    for one in record["headers"]
                ],
            }
            for record in map(json.loads, lines)
        ]
    target = file.with_suffix(".parquet")
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), target)
    return target


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
