"""A document on its way to a plan: what could be read of it, with the defaults merged in.

A file with mistakes still has parts that can be judged, so the rules work on a draft, which may lack
the parts that were broken.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from replicator.topology.problems import Path
from replicator.topology.spec.cluster_spec import ClusterSpec
from replicator.topology.spec.document import ActivePassive, Document, HubAndSpoke, LinkSpec
from replicator.topology.spec.policy_spec import PolicySpec

_DEEP = frozenset({"topics", "groups", "sync", "priorities", "overrides"})
"""Fields that are merged field by field; in all others a link's value replaces the default."""

DEFAULTS: Path = ("spec", "defaults")


@dataclass(frozen=True, slots=True)
class DraftLink:
    """A link of the file, the place it has there, and its policy with the defaults merged in."""

    index: int
    spec: LinkSpec
    policy: PolicySpec
    partial: bool = False
    """Some of its fields, or of the defaults, could not be read: what they say is not known."""

    @property
    def path(self) -> Path:
        """Where the link stands in the document."""
        return ("spec", "links", self.index)

    @property
    def mentioned(self) -> tuple[tuple[Path, str], ...]:
        """Every alias the link names, with its path."""
        spec = self.spec
        if isinstance(spec, ActivePassive):
            return ((("active",), spec.active), (("passive",), spec.passive))
        if isinstance(spec, HubAndSpoke):
            spokes = tuple((("spokes", at), alias) for at, alias in enumerate(spec.spokes))
            return ((("hub",), spec.hub), *spokes)
        return tuple((("clusters", at), alias) for at, alias in enumerate(spec.clusters))

    def where(self, *field: str) -> Path:
        """The path of a policy field: on the link, else on the defaults, else the link itself."""
        if _given(self.spec, field) is not None:
            return (*self.path, *field)
        if _given(self.policy, field) is not None:
            return (*DEFAULTS, *field)
        return self.path


@dataclass(frozen=True, slots=True)
class Draft:
    """What could be read of a document.

    `aliases` are all clusters that the file declares, `clusters` those that could be read.
    """

    name: str
    aliases: tuple[str, ...]
    clusters: Mapping[str, ClusterSpec]
    defaults: PolicySpec
    links: tuple[DraftLink, ...]


def draft_of(
    document: Document,
    *,
    indexes: tuple[int, ...] | None = None,
    aliases: tuple[str, ...] = (),
    partial: Collection[int] = (),
) -> Draft:
    """The draft of a document.

    Args:
        document: what could be read.
        indexes: the places of its links in the file; None where none was left out.
        aliases: all clusters of the file, where some were left out.
        partial: the places of links of which not everything is known.
    """
    defaults = document.spec.defaults or PolicySpec()
    links = document.spec.links
    places = tuple(range(len(links))) if indexes is None else indexes
    return Draft(
        name=document.metadata.name,
        aliases=aliases or tuple(document.spec.clusters),
        clusters=document.spec.clusters,
        defaults=defaults,
        links=tuple(
            DraftLink(index, link, merged_policy(defaults, link), index in partial)
            for index, link in zip(places, links, strict=True)
        ),
    )


def merged_policy(defaults: PolicySpec, link: PolicySpec) -> PolicySpec:
    """The link's policy over the defaults; `topics`, `groups` and `sync` field by field."""
    return PolicySpec().model_copy(
        update={
            name: _merged(name, getattr(defaults, name), getattr(link, name))
            for name in PolicySpec.model_fields
        }
    )


def _merged(name: str, below: object, above: object) -> object:
    if above is None:
        return below
    if below is None:
        return above
    if isinstance(above, BaseModel) and type(below) is type(above) and name in _DEEP:
        fields = type(above).model_fields
        # Everything under a deep field is deep, except lists.
        merged = {
            field: _merged(
                "topics" if isinstance(getattr(above, field), BaseModel) else field,
                getattr(below, field),
                getattr(above, field),
            )
            for field in fields
        }
        return above.model_copy(update=merged)
    if isinstance(above, dict) and isinstance(below, dict) and name in _DEEP:
        # The link's entries come first, because the first match counts.
        return above | {key: value for key, value in below.items() if key not in above}
    return above


def _given(spec: BaseModel, field: tuple[str, ...]) -> object:
    """The value of a field by its name in the file; None when it is not given."""
    value: object = spec
    for name in field:
        if not isinstance(value, BaseModel):
            return None
        attribute = next(at for at, info in type(value).model_fields.items() if info.alias == name)
        value = getattr(value, attribute)
    return value
