"""Commands run as users with limited rights, and whether what they say names a right that is missing."""

import contextlib
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from documented_rights import Need, Right, grant

from replicator.cli.main import run_command
from replicator.testing import LocalCluster

_REFUSED = ("to our user", "our user lacks", "may not", "uthorization failed", "not authorized")
_WORDS = {"transactional-id": "transactional", "cluster": "cluster", "group": "group"}


@dataclass(frozen=True)
class Ran:
    """A command that ended, with all it said."""

    code: int
    said: str


def run(*arguments: object) -> Ran:
    """Runs a command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command([str(each) for each in arguments])
    return Ran(code, out.getvalue() + err.getvalue())


@dataclass(frozen=True)
class LimitedUsers:
    """Users of two clusters with authorizers, and the topology file as each of them has it.

    Attributes:
        clusters: by alias.
        folder: where files are written.
        file: the topology of an administrator, as JSON.
        topology: its name.
        topics: what the names of its topics begin with.
    """

    clusters: dict[str, LocalCluster]
    folder: Path
    file: Path
    topology: str
    topics: str

    def granted(self, user: str, rights: Iterable[Right]) -> Path:
        """Grants a user these rights; gives the topology with its login."""
        grant(self.clusters, user, rights, topology=self.topology, topics=self.topics)
        text = json.loads(self.file.read_text())
        for name, cluster in self.clusters.items():
            text["spec"]["clusters"][name] = dict(cluster.topology_entry(user))
        file = self.folder / f"{user}.yaml"
        file.write_text(json.dumps(text))
        return file

    def names(self, said: str, need: Need) -> bool:
        """Whether a text names what is missing: the resource, and that it is a matter of rights."""
        right = min(need.rights).under(self.topology, self.topics)
        named = right.name if right.resource == "topic" else _WORDS[right.resource]
        refused = any(word in said for word in _REFUSED)
        return refused and named in said


def user_names(who: str, needs: Iterable[Need]) -> list[str]:
    """One user with all the needs, and for each need one without it."""
    stem = who.replace(" ", "-")
    return [stem, *(f"{stem}-{number:02d}" for number, _ in enumerate(needs))]


def setup_users(*groups: list[str]) -> dict[str, str]:
    """Passwords of all users, and of the administrator."""
    return {
        "admin": "admin-secret",
        **{user: f"{user}-secret" for group in groups for user in group},
    }
