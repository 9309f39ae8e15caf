"""The protocol's messages, from kafka-python: the only import of that library.

Its generated classes encode and decode every version of every request. Importing it takes about
half a second, so callers import the rooms that need it only when they need them.
"""

import logging
import warnings

with warnings.catch_warnings():
    # It loads its schemas by a function of the standard library that was deprecated in 3.11 only.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.errors import KafkaError as ProtocolError
    from kafka.errors import for_code
    from kafka.net.sasl import get_sasl_mechanism
    from kafka.net.sasl.oauth import AbstractTokenProvider
    from kafka.protocol.admin import (
        DescribeAclsRequest,
        DescribeConfigsRequest,
        DescribeConfigsResponse,
        DescribeLogDirsRequest,
        ListGroupsRequest,
    )
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, ListOffsetsResponse
    from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
    from kafka.protocol.parser import KafkaProtocol
    from kafka.protocol.producer import ProduceRequest
    from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

_LOGGER = logging.getLogger("kafka")
_LOGGER.addHandler(logging.NullHandler())
_LOGGER.setLevel(logging.WARNING)  # below it, the library prints logins byte for byte

__all__ = [
    "AbstractTokenProvider",
    "ApiMessage",
    "ApiVersionsRequest",
    "DescribeAclsRequest",
    "DescribeConfigsRequest",
    "DescribeConfigsResponse",
    "DescribeLogDirsRequest",
    "FetchRequest",
    "KafkaProtocol",
    "ListGroupsRequest",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "MetadataRequest",
    "ProduceRequest",
    "ProtocolError",
    "SaslAuthenticateRequest",
    "SaslHandshakeRequest",
    "for_code",
    "get_sasl_mechanism",
]
