"""Everything the control room asks of a cluster, behind one object."""

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Self

from replicator.errors import ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin import acls, brokers, offsets, topics
from replicator.kafka.admin.offsets import LogEnd, OffsetPoint
from replicator.kafka.admin.session import AdminSession
from replicator.kafka.admin.topics import Failures, NewTopicSpec, TopicDescription
from replicator.kafka.clients.settings import Isolation
from replicator.logins.cluster_login import ClusterLogin, login_of
from replicator.policy.copies.acl_rules import AclBinding
from replicator.policy.copies.topic_config import ConfigValue
from replicator.topology.plan import ClusterPlan
from replicator.wire.groups.group_description import CommittedOffset, GroupDescription

if TYPE_CHECKING:
    from replicator.wire.groups.group_list import GroupsListed
    from replicator.wire.groups.groups import Groups
    from replicator.wire.requests.cluster_description import ClusterDescription
    from replicator.wire.requests.topic_settings import TopicSettings


class ClusterAdmin:
    """Blocking and thread-safe; nothing is sent before the first call.

    Every call ends within about ``timeout_seconds`` and raises errors of our tree: UnreachableError,
    AuthenticationFailedError, NotAuthorizedError and so on, with what to do. What happens to single
    topics or partitions of a change is in its answer. After a refused login the secrets are read
    again at the next call.
    """

    def __init__(
        self, cluster: ClusterPlan, *, client_id: str, timeout_seconds: float = 10.0
    ) -> None:
        self.cluster = cluster
        self._session = AdminSession(cluster, client_id=client_id, timeout_seconds=timeout_seconds)
        self._settings: TopicSettings | None = None
        self._reading_settings = threading.Lock()
        self._groups: Groups | None = None
        self._asking_groups = threading.Lock()
        self._login: ClusterLogin | None = None

    def close(self) -> None:
        """Gives the connections back."""
        self._session.close()
        with self._reading_settings:
            if self._settings is not None:
                self._settings.close()
        with self._asking_groups:
            if self._groups is not None:
                self._groups.close()

    def close_unused(self, seconds: float) -> None:
        """Gives the connections back if nothing was asked for so long; a later call opens new ones."""
        self._session.close_unused(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cluster_id(self) -> str:
        """The id that stays the same for the cluster's whole life."""
        return self.describe_cluster().cluster_id

    def describe_cluster(self) -> "ClusterDescription":
        """Id, brokers, controller and our rights."""
        from replicator.wire.requests.cluster_description import (
            describe_cluster,  # slow to import, seldom needed
        )

        # One question to an identity provider for all that is asked, however short each connection is.
        self._login = login_of(self.cluster)
        return describe_cluster(
            self.cluster,
            client_id=self._session.client_id,
            timeout_seconds=self._session.timeout_seconds,
        )

    def broker_settings(self, broker: int) -> dict[str, str | None]:
        """All settings of a broker; None where it keeps the value to itself."""
        return brokers.broker_settings(self._session, broker)

    def topic_partitions(self) -> dict[str, int]:
        """All topics with the number of their partitions; one cheap request."""
        return topics.topic_partitions(self._session)

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        """Id, partitions, replicas, leaders and our rights; missing names are absent."""
        return topics.describe_topics(self._session, names)

    def describe_each_topic(
        self, names: Iterable[str]
    ) -> dict[str, TopicDescription | ReplicatorError]:
        """The same, with what the cluster says of each name that it does not describe."""
        return topics.describe_each_topic(self._session, names)

    def topic_configs(self, names: Iterable[str]) -> dict[str, Mapping[str, ConfigValue]]:
        """All settings of topics; missing names are absent."""
        from replicator.wire.requests.topic_settings import (
            TopicSettings,  # slow to import, seldom needed
        )

        with self._reading_settings:
            if self._settings is None:
                self._settings = TopicSettings(self.cluster, client_id=self._session.client_id)
            return self._settings.read(names, timeout_seconds=self._session.timeout_seconds)

    def create_topics(self, specs: Iterable[NewTopicSpec]) -> Failures:
        """Creates topics; None for each that is done, else why not."""
        return topics.create_topics(self._session, specs)

    def refused_creations(self, names: Iterable[str]) -> frozenset[str]:
        """Which of these topics our user may not create; nothing is created."""
        return topics.refused_creations(self._session, names)

    def create_partitions(self, totals: Mapping[str, int]) -> Failures:
        """Grows topics to that many partitions in all; None for each that is done."""
        return topics.create_partitions(self._session, totals)

    def alter_topic_configs(self, changes: Mapping[str, Mapping[str, str | None]]) -> Failures:
        """Sets single settings, takes them back with None; None for each topic that is done."""
        return topics.alter_topic_configs(self._session, changes)

    def delete_topics(self, names: Iterable[str]) -> Failures:
        """Deletes topics; None for each that is done."""
        return topics.delete_topics(self._session, names)

    def offsets(
        self,
        partitions: Iterable[TopicPartition],
        at: OffsetPoint,
        isolation: Isolation = "read_committed",
    ) -> dict[TopicPartition, int | ReplicatorError]:
        """Offsets at one point of many partitions; see ``offsets.list_offsets``."""
        return offsets.list_offsets(self._session, partitions, at, isolation=isolation)

    def log_ends(
        self,
        partitions: Iterable[TopicPartition],
        isolation: Isolation = "read_uncommitted",
    ) -> dict[TopicPartition, LogEnd | ReplicatorError]:
        """Where logs end, open transactions included by default, with their leaders' epochs."""
        return offsets.log_ends(self._session, partitions, isolation=isolation)

    def known_offsets(
        self,
        partitions: Iterable[TopicPartition],
        at: OffsetPoint,
        isolation: Isolation = "read_committed",
    ) -> dict[TopicPartition, int]:
        """The same without the partitions that were not answered."""
        answers = self.offsets(partitions, at, isolation)
        return {key: answer for key, answer in answers.items() if isinstance(answer, int)}

    def every_offset(
        self,
        partitions: Iterable[TopicPartition],
        at: OffsetPoint,
        isolation: Isolation = "read_committed",
    ) -> dict[TopicPartition, int]:
        """The same; raises the error of the first partition that was not answered."""
        found: dict[TopicPartition, int] = {}
        for key, answer in self.offsets(partitions, at, isolation).items():
            if isinstance(answer, ReplicatorError):
                raise answer
            found[key] = answer
        return found

    def list_groups(self) -> tuple[str, ...]:
        """Names of all consumer groups that our user may see.

        Raises:
            ReplicatorError: a broker does not name those that it coordinates, or some have no coordinator.
        """
        listed = self.groups_listed()
        if listed.unheard is not None:
            raise listed.unheard
        return listed.names

    def groups_listed(self) -> "GroupsListed":
        """The same where some brokers are silent, with the reason why there may be more.

        Raises:
            ReplicatorError: the cluster cannot be reached, or refuses us.
        """
        from replicator.wire.groups.group_list import list_groups  # slow to import

        return list_groups(
            self.cluster,
            client_id=self._session.client_id,
            timeout_seconds=self._session.timeout_seconds,
        )

    def describe_group(self, group: str) -> GroupDescription:
        """State and members; DEAD without members when it does not exist."""
        return self.describe_groups([group])[group]

    def describe_groups(self, names: Iterable[str]) -> dict[str, GroupDescription]:
        """State and members of many groups, of any protocol type."""
        with self._asking_groups:
            return self._of_groups().states.read(
                names, timeout_seconds=self._session.timeout_seconds
            )

    def committed_offsets(
        self, names: Iterable[str]
    ) -> dict[str, Mapping[TopicPartition, CommittedOffset] | ReplicatorError]:
        """Where many groups stand, or why that cannot be told; partitions without a position are absent."""
        with self._asking_groups:
            return self._of_groups().offsets.read(
                names, timeout_seconds=self._session.timeout_seconds
            )

    def commit_offsets(
        self, positions: Mapping[str, Mapping[TopicPartition, tuple[int, str]]]
    ) -> dict[str, Mapping[TopicPartition, ReplicatorError | None] | ReplicatorError]:
        """Sets positions (offset, metadata) of groups that nobody is in; returns why where it was not done."""
        with self._asking_groups:
            return self._of_groups().offsets.set(
                positions, timeout_seconds=self._session.timeout_seconds
            )

    def delete_groups(self, names: Iterable[str]) -> dict[str, ReplicatorError | None]:
        """Deletes groups with their positions; None for each that is done."""
        with self._asking_groups:
            return self._of_groups().states.delete(
                names, timeout_seconds=self._session.timeout_seconds
            )

    def _of_groups(self) -> "Groups":
        from replicator.wire.groups.groups import Groups  # slow to import

        if self._groups is None:
            self._groups = Groups(self.cluster, client_id=self._session.client_id)
        return self._groups

    def create_acls(
        self, bindings: Iterable[AclBinding]
    ) -> dict[AclBinding, ReplicatorError | None]:
        """Adds rights; None for each that is done or was there already, else why not."""
        return acls.create_acls(self._session, bindings)

    def delete_acls(
        self, bindings: Iterable[AclBinding]
    ) -> dict[AclBinding, ReplicatorError | None]:
        """Takes exactly these rights away; None for each that is gone, else why not."""
        return acls.delete_acls(self._session, bindings)
