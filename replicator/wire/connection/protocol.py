"""The protocol's messages, from kafka-python: the only import of that library.

Its generated classes encode and decode every version of every request. Importing it takes about
half a second, so callers import the rooms that need it only when they need them.
"""

import functools
import logging
import threading
import warnings

with warnings.catch_warnings():
    # It loads its schemas by a function of the standard library that was deprecated in 3.11 only.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.protocol.admin
    import kafka.protocol.consumer
    import kafka.protocol.metadata
    import kafka.protocol.producer
    import kafka.protocol.sasl
    from kafka.errors import KafkaError as ProtocolError
    from kafka.errors import for_code
    from kafka.net.sasl import get_sasl_mechanism
    from kafka.net.sasl.oauth import AbstractTokenProvider
    from kafka.protocol.admin import (
        DeleteGroupsRequest,
        DescribeAclsRequest,
        DescribeConfigsRequest,
        DescribeConfigsResponse,
        DescribeGroupsRequest,
        DescribeLogDirsRequest,
        DescribeProducersRequest,
        DescribeTransactionsRequest,
        ListGroupsRequest,
        ListTransactionsRequest,
    )
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.consumer import (
        FetchRequest,
        ListOffsetsRequest,
        ListOffsetsResponse,
        OffsetCommitRequest,
        OffsetFetchRequest,
        OffsetFetchResponse,
    )
    from kafka.protocol.metadata import (
        ApiVersionsRequest,
        FindCoordinatorRequest,
        MetadataRequest,
    )
    from kafka.protocol.parser import KafkaProtocol as _KafkaProtocol
    from kafka.protocol.producer import (
        AddPartitionsToTxnRequest,
        EndTxnRequest,
        InitProducerIdRequest,
        ProduceRequest,
    )
    from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
    from kafka.record import MemoryRecords

_LOGGER = logging.getLogger("kafka")
_LOGGER.addHandler(logging.NullHandler())
_LOGGER.setLevel(logging.WARNING)  # below it, the library prints logins byte for byte

_making_classes = threading.Lock()


class KafkaProtocol(_KafkaProtocol):  # type: ignore[misc]  # the library has no types
    """The library's encoder and decoder of one connection, safe beside others in other threads.

    The library makes the class of a response in one version when the first one arrives, and registers
    it by a weak reference. Two threads that make the same one at once leave the reference to the one
    that is thrown away: from then on every response of that kind is a ReferenceError (3.0.12).
    """

    def send_request(self, request: ApiMessage, correlation_id: int | None = None) -> int:
        """As the library's, and makes the class of the response while no other thread makes one."""
        with _making_classes:
            sent: int = super().send_request(request, correlation_id)
            request.header.get_response_class()
        return sent


@functools.cache
def message_classes() -> dict[int, tuple[type[ApiMessage], type[ApiMessage]]]:
    """By api key the classes of request and response, of all messages that the library knows."""
    found: dict[int, dict[str, type[ApiMessage]]] = {}
    rooms = kafka.protocol
    for room in (rooms.admin, rooms.consumer, rooms.metadata, rooms.producer, rooms.sasl):
        for message in vars(room).values():
            if isinstance(message, type(ApiMessage)) and message is not ApiMessage:
                found.setdefault(message.API_KEY, {})[message.type] = message
    return {
        key: (each["request"], each["response"]) for key, each in found.items() if len(each) == 2
    }


__all__ = [
    "AbstractTokenProvider",
    "AddPartitionsToTxnRequest",
    "ApiMessage",
    "ApiVersionsRequest",
    "DeleteGroupsRequest",
    "DescribeAclsRequest",
    "DescribeConfigsRequest",
    "DescribeConfigsResponse",
    "DescribeGroupsRequest",
    "DescribeLogDirsRequest",
    "DescribeProducersRequest",
    "DescribeTransactionsRequest",
    "EndTxnRequest",
    "FetchRequest",
    "FindCoordinatorRequest",
    "InitProducerIdRequest",
    "KafkaProtocol",
    "ListGroupsRequest",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListTransactionsRequest",
    "MemoryRecords",
    "MetadataRequest",
    "OffsetCommitRequest",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "ProduceRequest",
    "ProtocolError",
    "SaslAuthenticateRequest",
    "SaslHandshakeRequest",
    "for_code",
    "get_sasl_mechanism",
    "message_classes",
]
