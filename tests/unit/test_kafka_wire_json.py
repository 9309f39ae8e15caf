"""Keys and values of control records."""

import pytest

from replicator.errors import StoredFormatError
from replicator.kafka.clients.wire_json import decode_key, decode_value, encode_key, encode_value
from replicator.wire.connection.leader import split_address
from replicator.wire.probes.broker_versions import NEEDED, missing_features


def test_two_writers_give_the_same_bytes():
    assert encode_key({"topic": "a", "partition": 1}) == encode_key({"partition": 1, "topic": "a"})
    assert encode_key({"b": "é", "a": None}) == '{"a":null,"b":"é","v":1}'.encode()


def test_unknown_fields_are_kept():
    assert decode_value(b'{"v":1,"later":[1],"known":2}') == {"v": 1, "later": [1], "known": 2}
    assert decode_key(encode_value({"x": 1})) == {"v": 1, "x": 1}


@pytest.mark.parametrize(
    "data",
    [None, b"", b"[]", b"{", b"{}", b'{"v":2}', b'{"v":true}', b'{"v":"1"}', b"\xff", b'"v"'],
)
def test_what_is_not_ours_is_refused(data):
    with pytest.raises(StoredFormatError) as raised:
        decode_value(data, subject="control/0")
    assert raised.value.subject == "control/0"
    assert raised.value.remedy


def test_a_key_of_another_kind_is_returned_with_any_version():
    key = encode_key({"kind": "later", "v": 7})
    assert decode_key(key, kinds={"layout"}) == {"kind": "later", "v": 7}
    for kinds in (None, {"later"}):
        with pytest.raises(StoredFormatError):
            decode_key(key, kinds=kinds)


def test_a_broker_is_refused_for_what_it_lacks_and_no_more():
    current = {key: (0, needed) for key, (_, needed, _) in NEEDED.items()}
    assert missing_features(current) == ()
    assert missing_features({key: (3, top + 9) for key, (_, top) in current.items()}) == ()

    old = current | {22: (0, 2)}
    del old[60]
    lacks = missing_features(old)
    assert len(lacks) == 2
    assert lacks[0].startswith("InitProducerId version 3: fencing")
    assert lacks[1].startswith("DescribeCluster")


def test_addresses_come_apart():
    assert split_address("kafka:9092") == ("kafka", 9092)
    assert split_address("[::1]:9092") == ("::1", 9092)
