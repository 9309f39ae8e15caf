"""What source topics hold: random hex text as the incompressible case, JSON as real topics have it."""

import json
import random
from dataclasses import dataclass, replace
from typing import Literal

Codec = Literal["none", "zstd", "lz4", "snappy", "gzip"]

_RECORDS = 1_000
# fmt: off
_WORDS = (
    "account", "address", "basket", "billing", "category", "checkout", "customer", "delivery", "discount", "invoice",
    "market", "payment", "product", "region", "reference", "session", "shipping", "status", "street", "voucher",
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Payload:
    """One case of the throughput part.

    Attributes:
        label: for tables.
        size_bytes: of a record's value, about.
        records: how many the source holds.
        partitions: of the topic, on both sides.
        json: JSON documents instead of hex text.
        codec: of the source's batches.
        batch_records: how many records a source batch holds; 0: as many as fit into 250 KiB.
        secured: both clusters are spoken to over TLS.
    """

    label: str
    size_bytes: int
    records: int
    partitions: int = 4
    json: bool = False
    codec: Codec = "none"
    batch_records: int = 0
    secured: bool = False

    @property
    def key(self) -> str:
        """For names of topics."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.label.lower())

    def scaled(self, share: float) -> "Payload":
        """The same with fewer or more records."""
        return replace(self, records=max(4_000, round(self.records * share)))

    def bodies(self) -> list[bytes]:
        """The different values, which follow each other again and again."""
        if self.json:
            return documents(size_bytes=self.size_bytes)
        return texts(size_bytes=self.size_bytes)


def texts(*, size_bytes: int, seed: int = 1) -> list[bytes]:
    """Semi-random records: hex text, so that a codec would gain about half and no more."""
    draw = random.Random(seed)
    return [
        draw.randbytes((size_bytes + 1) // 2).hex().encode()[:size_bytes] for _ in range(_RECORDS)
    ]


def documents(*, size_bytes: int, seed: int = 1) -> list[bytes]:
    """JSON with repeated field names, numbers and identifiers; codecs make a fourth to a fifth of it."""
    draw = random.Random(seed)
    found = []
    for number in range(_RECORDS):
        document: dict[str, object] = {
            "id": f"{draw.getrandbits(64):016x}",
            "sequence": number,
            "createdAt": 1_700_000_000_000 + draw.randrange(10**9),
            "customer": {
                "name": " ".join(draw.choices(_WORDS, k=2)),
                "country": draw.choice(_WORDS),
            },
        }
        lines: list[dict[str, object]] = []
        document["lines"] = lines
        while len(text := json.dumps(document).encode()) < size_bytes - 40:
            lines.append(
                {
                    "product": draw.choice(_WORDS),
                    "sku": f"{draw.getrandbits(40):010X}",
                    "quantity": draw.randrange(10),
                    "priceCents": draw.randrange(100_000),
                    "status": draw.choice(("open", "paid", "sent")),
                }
            )
        found.append(text)
    return found
