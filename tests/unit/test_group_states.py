"""What is read of the groups' own bytes."""

import struct

from replicator.wire.groups.group_states import assigned_partitions


def assignment(version: int, *topics: tuple[str, list[int]]) -> bytes:
    parts = [struct.pack(">hi", version, len(topics))]
    for name, numbers in topics:
        parts.append(struct.pack(">h", len(name)) + name.encode())
        parts.append(struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join([*parts, struct.pack(">i", -1)])


def test_partitions_of_a_member_are_read_in_every_version():
    for version in (0, 3):
        found = assigned_partitions(assignment(version, ("b", [1, 0]), ("a", [7])))
        assert found == (("a", 7), ("b", 0), ("b", 1))


def test_a_member_without_partitions_has_none():
    assert assigned_partitions(assignment(0)) == ()
    assert assigned_partitions(b"") == ()


def test_bytes_of_a_client_with_words_of_its_own_are_no_partitions():
    whole = assignment(1, ("topic", [1, 2]))
    for end in range(1, len(whole) - 4):
        assert assigned_partitions(whole[:end]) == ()
    assert assigned_partitions(b"\xff" * 40) == ()
