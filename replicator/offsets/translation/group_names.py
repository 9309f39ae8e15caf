"""The names of a cluster's consumer groups, listed anew only when they have changed."""

from typing import TYPE_CHECKING

from replicator.errors import NotAuthorizedError, ReplicatorError
from replicator.identifiers import ClusterAlias
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.groupless import NO_GROUP

if TYPE_CHECKING:
    from replicator.wire.groups.group_changes import GroupChanges
    from replicator.wire.groups.group_list import GroupsListed


class GroupNames:
    """Remembers the last list of one cluster; for one thread at a time."""

    def __init__(self, admin: ClusterAdmin, *, client_id: str) -> None:
        self._admin = admin
        self._client_id = client_id
        self._changes: GroupChanges | None = None
        self._known: GroupsListed | None = None

    def read(self) -> "GroupsListed":
        """All consumer groups our user may see, as far as brokers name theirs.

        Raises:
            ClusterError: the cluster does not answer, or refuses to be looked at.
        """
        known = self._known
        if known is None or known.unheard is not None or self._changed():
            self._known = None  # what follows may fail
            self._known = known = self._admin.groups_listed()
        return known

    def close(self) -> None:
        """Gives its own connections back; the admin client is its owner's."""
        if self._changes is not None:
            self._changes.close()

    def _changed(self) -> bool:
        """Whether a look shows a change; what cannot be looked at counts as changed."""
        if self._changes is None:
            from replicator.wire.groups.group_changes import GroupChanges  # slow to import

            self._changes = GroupChanges(self._admin.cluster, client_id=self._client_id)
        try:
            return self._changes.any()
        except ReplicatorError:
            return True  # listing them tells what is wrong


def require_visible_groups(admin: ClusterAdmin, alias: ClusterAlias) -> None:
    """For a list of groups without one that counts: whether there may be some that are hidden from us.

    Kafka leaves out what our user may not describe, without a word. So a group that nobody has is asked about.

    Raises:
        NotAuthorizedError: our user may describe neither every group nor the cluster.
        ReplicatorError: the cluster does not answer.
    """
    try:
        admin.describe_group(NO_GROUP)
    except NotAuthorizedError as refused:
        if "DESCRIBE" in admin.describe_cluster().authorized_operations:
            return  # which shows the names of all
        raise NotAuthorizedError(
            f"no group of {alias} can be seen: our user may not describe groups there",
            subject=f"cluster:{alias}",
            remedy="Allow DESCRIBE by an ACL on the groups, or set sync.groups.enabled to false.",
        ) from refused
