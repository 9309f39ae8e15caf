"""The commands of the pages about installing, word by word, in a fresh folder, on a real API server.

What needs a registry, an image or a node is left out here: `tests/images` builds and runs the images. The chart comes
out of the package that the page's own command makes.
"""

import re
import shlex
import shutil

import pytest
from api_server import ApiServer, running_api_server
from chart_engine import CHART, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SPACE = "replication"
REGISTRY = "oci://registry.example.com/charts/replicator"
OPERATORS = (
    "podmonitors.monitoring.coreos.com",
    "prometheusrules.monitoring.coreos.com",
    "applications.argoproj.io",
    "helmrepositories.source.toolkit.fluxcd.io",
    "helmreleases.helm.toolkit.fluxcd.io",
)
ELSEWHERE = ("make", "docker", "kafka-acls.sh", "replicator")
"""Programs of the pages that other tests run."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_api_server(tmp_path_factory.mktemp("kubernetes")) as server:
        server.define(*OPERATORS)
        server.kubectl("create", "priorityclass", "platform-critical", "--value=1000")
        yield server


@pytest.fixture
def folder(tmp_path):
    """A fresh clone, as far as the pages use it, with the files of a bank beside it."""
    for part in ("helm", "topologies", "deploy"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "ca.crt").write_text("certificate")
    return tmp_path


def commands(page):
    """The command lines of a page, in order; a line that ends with a backslash goes on."""
    text = page.read_text().replace("\\\n", " ")
    return [shlex.split(line) for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE)]


def run_here(words):
    return words[0] in {"helm", "kubectl"} and words[1] not in {"push", "exec", "logs"} and "|" not in words  # fmt: skip


def test_from_nothing_to_a_release_that_is_upgraded_rolled_back_and_removed(
    server: ApiServer, folder
):
    page = commands(ROOT / "docs/deploying.md")
    assert all(run_here(each) or each[0] in ELSEWHERE or each[1] in {"push", "exec"} or "=" in each[0] for each in page)  # fmt: skip
    server.kubectl("create", "namespace", "argocd")  # Argo CD's own
    ran = []
    for words in filter(run_here, page):
        here = ["replicator-0.1.0.tgz" if each == REGISTRY else each for each in words]
        playing = SPACE if words[0] == "helm" and words[1] != "package" else ""
        done = server.run(*here, folder=folder, playing=playing)
        ran.append((*words[:2], done.code))
        if words[:2] == ["helm", "test"]:  # only a node has its log
            assert "replicator-test" in done.said
            continue
        assert done.code == 0, f"{shlex.join(words)}\n{done.said}"
        if words[1] == "install":
            (workers,) = server.get("statefulsets", SPACE).values()
            assert workers["spec"]["replicas"] == 3
            container = workers["spec"]["template"]["spec"]["containers"][0]
            assert container["image"].startswith("registry.example.com/replicator/worker@sha256:")
            assert set(server.get("secrets", SPACE)) >= {"registry", "kafka-east", "kafka-west", "replicator-api"}  # fmt: skip
    assert server.get("statefulsets", SPACE) == {}
    assert [words[1] for words in ran if words[0] == "helm"] == ["package", "install", "test", "upgrade", "rollback", "uninstall"]  # fmt: skip
    assert set(server.get("applications", "argocd")) == {"replicator"}
    assert set(server.get("helmreleases", SPACE)) == {"replicator"}


def test_the_charts_own_page_installs_with_files_that_are_there(server: ApiServer, folder):
    ran = []
    for words in filter(run_here, commands(CHART / "README.md")):
        if words[0] == "helm":
            if words[1] == "uninstall":
                (workers,) = server.get("statefulsets", SPACE).values()
            done = server.run(*words, folder=folder, playing=SPACE)
            assert done.code == 0 or words[1] == "test", f"{shlex.join(words)}\n{done.said}"
            ran.append(words[1])
        if words[:2] == ["kubectl", "delete"] and "-l" in words:
            assert set(server.get("pods", SPACE)) == {"replicator-test"}, "Helm leaves it"
            assert server.run(*words, folder=folder).code == 0
    assert ran == ["install", "test", "uninstall"]
    for kind in ("pods", "jobs", "configmaps", "services", "statefulsets", "serviceaccounts"):
        left = set(server.get(kind, SPACE)) - {"kube-root-ca.crt", "replicator-values"}  # Flux's
        assert not left, kind
    image = workers["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image.startswith("registry.example.com/")
