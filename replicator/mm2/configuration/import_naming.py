"""MirrorMaker 2's replication policy as ``naming``: target topics must keep the names they have. Pure."""

import re
from dataclasses import dataclass

from replicator.mm2.properties.java_properties import Entry
from replicator.policy.copies.naming import name_problem, template_problem
from replicator.policy.values import Naming

DEFAULT_SEPARATOR = "."
_IDENTITY = ("IdentityReplicationPolicy", "LegacyReplicationPolicy")


@dataclass(frozen=True, slots=True)
class NamingImport:
    """``naming`` of a flow; ``exclude`` are topics that must not come back over it.

    ``refused`` says why the policy could not be taken over; names are then assumed to be prefixed.
    """

    naming: str | dict[str, str]
    exclude: tuple[str, ...] = ()
    refused: str = ""

    def policy(self) -> Naming:
        """The same as a rule of names."""
        if isinstance(self.naming, str):
            return Naming("identity" if self.naming == "identity" else "prefix")
        return Naming("template", self.naming["template"])


def import_naming(
    source: tuple[str, str], target: tuple[str, str], policy: Entry | None, separator: Entry | None
) -> NamingImport:
    """The naming of one flow.

    Args:
        source: MirrorMaker 2's alias of the source, and the alias it has here.
        target: the same of the target.
        policy: ``replication.policy.class``.
        separator: ``replication.policy.separator``.
    """
    name = policy.value.strip().rpartition(".")[2] if policy is not None else ""
    if name in _IDENTITY:
        return NamingImport("identity")
    refused = ""
    if name not in {"", "DefaultReplicationPolicy"}:
        refused = f"Java classes cannot be loaded; '{source[0]}{DEFAULT_SEPARATOR}TOPIC' is assumed"
    between = separator.value.strip() if separator is not None else DEFAULT_SEPARATOR
    if name_problem(f"{source[0]}{between}t") is not None:
        return NamingImport("prefix", refused=f"'{between}' cannot stand in a topic's name")
    # Names on the target are there already, so the alias stays in them as it was. A name with another
    # alias than the topology's does not tell where a topic came from, so what came from the target
    # is left out by its name.
    start, joint = re.escape(target[0]), re.escape(between)
    exclude: tuple[str, ...] = (f"regex:(?:.*{joint})?{start}{joint}.*",)
    template = f"{{source}}{between}{{topic}}"
    if source[0] != source[1] or template_problem(template) is not None:
        template = f"{source[0]}{between}{{topic}}"
    elif target[0] == target[1]:
        exclude = ()
    prefix = template == f"{{source}}{DEFAULT_SEPARATOR}{{topic}}"
    return NamingImport("prefix" if prefix else {"template": template}, exclude, refused)
