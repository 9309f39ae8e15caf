"""librdkafka's own error codes under public names; it spells its local ones with an underscore."""

from confluent_kafka import KafkaError

AUTHENTICATION: int = KafkaError._AUTHENTICATION
BAD_COMPRESSION: int = KafkaError._BAD_COMPRESSION
BAD_MESSAGE: int = KafkaError._BAD_MSG
NOT_IMPLEMENTED: int = KafkaError._NOT_IMPLEMENTED
AUTO_OFFSET_RESET: int = KafkaError._AUTO_OFFSET_RESET
INVALID_DIFFERENT_RECORD: int = KafkaError._INVALID_DIFFERENT_RECORD
LOG_TRUNCATION: int = KafkaError._LOG_TRUNCATION
FATAL: int = KafkaError._FATAL
ERRONEOUS_STATE: int = KafkaError._STATE
GROUP_REFUSED: int = KafkaError.GROUP_AUTHORIZATION_FAILED
NO_BROKER: int = KafkaError._TRANSPORT
"""In answer to a question that any broker may answer: there was none to ask, or its connection broke."""
PARTITION_EOF: int = KafkaError._PARTITION_EOF
PURGE_INFLIGHT: int = KafkaError._PURGE_INFLIGHT
PURGE_QUEUE: int = KafkaError._PURGE_QUEUE
QUEUE_FULL: int = KafkaError._QUEUE_FULL
TIMED_OUT: int = KafkaError._TIMED_OUT
UNKNOWN_PARTITION: int = KafkaError._UNKNOWN_PARTITION
UNKNOWN_TOPIC: int = KafkaError._UNKNOWN_TOPIC
