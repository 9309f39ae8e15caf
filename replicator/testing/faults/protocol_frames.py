"""Reading and changing Kafka's requests and responses, by the generated classes of the library.

Pure, over whole frames without their length. Addresses are changed by a function of host and port.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from replicator.testing.faults.protocol_rules import Api, HideApis, Request

Address = tuple[str, int]

_FIXED_HEADER = struct.Struct(">hhih")
_WITH_ADDRESSES = frozenset(
    {Api.METADATA, Api.FIND_COORDINATOR, Api.DESCRIBE_CLUSTER, Api.PRODUCE, Api.FETCH}
)
_TOPIC_RESOURCE = 2
_LEADER_NOT_AVAILABLE = 5
_ERROR_FIELDS = ("error_code", "partition_error_code")
_SAME_LISTS: Mapping[str, tuple[str, ...]] = {
    "responses": ("topics", "topic_data"),
    "partition_responses": ("partition_data",),
    "topics": ("topics",),
    "partitions": ("partitions", "partition_indexes"),
    "topic_results": ("topics",),
    "results_by_partition": ("partitions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "results_by_transaction": ("transactions",),
    "coordinators": ("coordinator_keys",),
    "groups": ("groups",),
    "results": ("resources",),
}
"""Lists of a response, and where the request has what they answer."""
_SAME_FIELDS: Mapping[str, tuple[str, ...]] = {
    "partition_index": ("partition_index", "partition", "index"),
    "partition": ("partition", "partition_index"),
    "index": ("index", "partition_index"),
}


@dataclass(frozen=True, slots=True)
class Frame:
    """One request: what is known of it, and its bytes."""

    request: Request
    correlation_id: int
    data: bytes
    answered: bool = True
    """False for a produce request that asks for no response."""


def message_classes() -> Mapping[int, tuple[Any, Any]]:
    """By api key the classes of request and response; loaded when the first frame is read."""
    from replicator.wire.connection import protocol

    return protocol.message_classes()


def read_request(data: bytes, topic_names: Mapping[Any, str]) -> Frame:
    """Reads the header, and the topics where the library knows the request.

    Args:
        data: the frame.
        topic_names: by topic id, for requests that name topics so.
    """
    api, version, correlation_id, length = _FIXED_HEADER.unpack_from(data)
    client_id = data[10 : 10 + length].decode(errors="replace") if length > 0 else ""
    topics: frozenset[str] = frozenset()
    answered = True
    classes = message_classes().get(api)
    if classes is not None and version <= classes[0].max_version and api != Api.API_VERSIONS:
        body = classes[0].decode(data, version=version, header=True)
        topics = frozenset(_topics(body, topic_names))
        answered = body.expect_response()
    return Frame(Request(api, version, client_id, topics), correlation_id, data, answered=answered)


def learn_topics(frame: Frame, response: bytes) -> dict[Any, str]:
    """Topic names by id, from a response to a metadata request."""
    if frame.request.api != Api.METADATA:
        return {}
    body = _decoded(frame, response)
    return {each.topic_id: each.name for each in body.topics if each.name}


def with_addresses(frame: Frame, response: bytes, change: Callable[[Address], Address]) -> bytes:
    """The response with every broker's address changed; the same bytes where it has none."""
    if frame.request.api not in _WITH_ADDRESSES:
        return response
    body = _decoded(frame, response)
    changed = False
    for place in _structs(body):
        host, port = getattr(place, "host", ""), getattr(place, "port", -1)
        if host and port >= 0:
            place.host, place.port = change((host, port))
            changed = True
    return _encoded(body) if changed else response


def with_versions(frame: Frame, response: bytes, hidden: HideApis) -> bytes:
    """The answer of ApiVersions without some keys, and with no version that could not be read here."""
    body = _decoded(frame, response)
    if body.error_code:
        return response
    limits = dict(hidden.highest)
    kept = []
    for each in body.api_keys:
        if each.api_key in hidden.keys:
            continue
        known = message_classes().get(each.api_key)
        most = known[0].max_version if known else each.max_version
        each.max_version = min(each.max_version, most, limits.get(each.api_key, most))
        if each.min_version <= each.max_version:
            kept.append(each)
    body.api_keys = kept
    return _encoded(body)


def without_brokers(frame: Frame, response: bytes) -> bytes:
    """The answer of Metadata as a broker gives it that knows topics, and no live broker."""
    body = _decoded(frame, response)
    body.brokers = []
    body.controller_id = -1
    for topic in body.topics:
        for partition in topic.partitions:
            partition.error_code, partition.leader_id = _LEADER_NOT_AVAILABLE, -1
    return _encoded(body)


def with_error(frame: Frame, response: bytes, error: int, topic: str | None) -> bytes:
    """The broker's own response with its error codes changed, those of one topic where one is given."""
    body = _decoded(frame, response)
    for place in _structs(body):
        if topic is None:
            _set_error(place, error)
        elif topic in (getattr(place, "name", None), getattr(place, "topic", None)):
            for inner in _structs(place):
                _set_error(inner, error)
    return _encoded(body)


def error_response(frame: Frame, error: int) -> bytes:
    """A response as a broker gives it that refuses the request with one error for everything in it.

    Raises:
        ValueError: the library does not know the request.
    """
    classes = message_classes().get(frame.request.api)
    if classes is None:
        raise ValueError(f"requests with the key {frame.request.api} are not known")
    asked = classes[0].decode(frame.data, version=frame.request.version, header=True)
    body = _answer(classes[1], frame.request.version, asked, error)
    if _has_error(body) and any(_has_error(each) for each in _structs(body) if each is not body):
        body.error_code = 0  # the whole was understood, each part was refused
    body.with_header(correlation_id=frame.correlation_id)
    return bytes(body.encode(header=True))


def _decoded(frame: Frame, response: bytes) -> Any:  # noqa: ANN401  the library has no types
    response_class = message_classes()[frame.request.api][1]
    return response_class.decode(response, version=frame.request.version, header=True)


def _encoded(body: Any) -> bytes:  # noqa: ANN401  the library has no types
    return bytes(body.encode(header=True))


def _structs(body: Any) -> Iterator[Any]:  # noqa: ANN401  the library has no types
    """The message and every structure in it, outermost first."""
    yield body
    for field in body.fields.values():
        if body.version is not None and not field.for_version_q(body.version):
            continue
        value = getattr(body, field.name, None)
        if field.is_struct_array():
            for each in value or ():
                yield from _structs(each)
        elif field.is_struct() and value is not None:
            yield from _structs(value)


def _topics(body: Any, names: Mapping[Any, str]) -> Iterator[str]:  # noqa: ANN401  as above
    for field in body.fields.values():
        value = getattr(body, field.name, None)
        if not field.is_struct_array() or not value:
            continue
        for each in value:
            if "topic" in field.name:
                yield from filter(None, (getattr(each, "name", ""), getattr(each, "topic", "")))
                name = names.get(getattr(each, "topic_id", None))
                if name is not None:
                    yield name
            elif getattr(each, "resource_type", None) == _TOPIC_RESOURCE:
                yield each.resource_name
            yield from _topics(each, names)


def _has_error(place: Any) -> bool:  # noqa: ANN401  as above
    return any(_is_in(place, name) for name in _ERROR_FIELDS)


def _set_error(place: Any, error: int) -> None:  # noqa: ANN401  as above
    for name in _ERROR_FIELDS:
        if _is_in(place, name):
            setattr(place, name, error)


def _is_in(place: Any, name: str) -> bool:  # noqa: ANN401  as above
    field = place.fields.get(name)
    return field is not None and (place.version is None or field.for_version_q(place.version))


def _answer(made_by: Any, version: int, asked: Any, error: int) -> Any:  # noqa: ANN401  as above
    """A structure of the response from the part of the request that it answers."""
    values: dict[str, Any] = {}
    for field in made_by.fields.values():
        if not field.for_version_q(version) or field.tagged_field_q(version):
            continue
        if field.name in _ERROR_FIELDS:
            values[field.name] = error
        elif field.is_struct_array():
            items = _asked_for(asked, field.name)
            values[field.name] = [_answer(field.data_class, version, item, error) for item in items]
        else:
            found = _asked_value(asked, field.name)
            if found is not None:
                values[field.name] = found
    if made_by.fields.keys() >= {"node_id", "host", "port"}:
        values |= {"node_id": -1, "host": "", "port": -1}
    if "base_offset" in made_by.fields:
        values["base_offset"] = -1
    return made_by(version=version, **values)


def _asked_for(asked: Any, name: str) -> list[Any]:  # noqa: ANN401  as above
    for candidate in _SAME_LISTS.get(name, ()):
        found = getattr(asked, candidate, None)
        if found:
            return list(found)
    return []


def _asked_value(asked: Any, name: str) -> Any:  # noqa: ANN401  as above
    if isinstance(asked, int):
        return asked if name in _SAME_FIELDS else None
    if isinstance(asked, str):
        return asked if name in ("key", "name") else None
    for candidate in _SAME_FIELDS.get(name, (name,)):
        field = asked.fields.get(candidate)
        if field is not None and not field.is_struct() and not field.is_struct_array():
            return getattr(asked, candidate)
    return None
