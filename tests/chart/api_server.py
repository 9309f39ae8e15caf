"""A real API server with its etcd, without nodes: what Helm's own commands are tried on.

Controllers run where a test names them. `deploy/build-kube-tools.sh` builds the programs, and finds the operators' own
definitions; both are looked for in KUBE_TOOLS, programs also on PATH.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_engine import ROOT
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from replicator.testing import wait_until
from replicator.testing.kit.child_processes import ChildProcess, start_child
from replicator.testing.kit.ports import free_ports

PROGRAMS = ("etcd", "kube-apiserver", "helm", "kubectl")
CONTROLLERS = "kube-controller-manager"
INSTALLER = ROOT / "deploy/examples/installer.yaml"
READY_SECONDS = 180.0
HOOK_SECONDS = 120.0
TOKENS = {"admin": "admin-of-tests", "installer": "installer-of-tests"}


def find_programs(*more: str) -> dict[str, str]:
    """The programs by name; skips the test where one is missing."""
    places = os.pathsep.join(filter(None, (os.environ.get("KUBE_TOOLS"), os.environ.get("PATH"))))
    found = {name: shutil.which(name, path=places) for name in (*PROGRAMS, *more)}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)} in KUBE_TOOLS or on PATH: deploy/build-kube-tools.sh builds them")  # fmt: skip
    return {name: path for name, path in found.items() if path is not None}


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    said: str


class ApiServer:
    """A running API server; namespaces keep tests apart."""

    def __init__(self, folder: Path, programs: Mapping[str, str], address: str) -> None:
        self._folder = folder
        self.programs = programs
        self.address = address

    def environment(self, user: str) -> dict[str, str]:
        """What a user's kubectl and Helm run with."""
        config = self._folder / f"{user}.kubeconfig"
        text = yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": self.address, "insecure-skip-tls-verify": True}}],
            "users": [{"name": user, "user": {"token": TOKENS[user]}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": user}}],
        })  # fmt: skip
        if not config.exists():  # another program may be reading it
            config.write_text(text)
        return {
            **os.environ, "KUBECONFIG": str(config), "HELM_CACHE_HOME": str(self._folder / "helm"),
            "HELM_CONFIG_HOME": str(self._folder / "helm"), "HELM_DATA_HOME": str(self._folder / "helm"),
        }  # fmt: skip

    def kubectl(self, *arguments: str, text: str = "") -> str:
        """Runs kubectl as the administrator."""
        done = subprocess.run(
            [self.programs["kubectl"], *arguments], input=text, capture_output=True, text=True,
            check=False, env=self.environment("admin"), timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, f"{arguments}\n{done.stderr}"
        return done.stdout

    def get(self, kind: str, namespace: str) -> dict[str, dict[str, Any]]:
        """All objects of a kind by name."""
        listed = json.loads(self.kubectl("get", kind, "-n", namespace, "-o", "json"))
        return {each["metadata"]["name"]: each for each in listed["items"]}

    def namespace(self, name: str) -> None:
        """A namespace that asks for restricted pods, where `installer` has the rights of deploy/examples alone."""
        roles = [
            {**role, "metadata": {**role["metadata"], "namespace": name}}
            for role in yaml.safe_load_all(INSTALLER.read_text())
        ]
        bindings = [
            {**role, "kind": "RoleBinding", "subjects": [{"kind": "User", "name": "installer"}],
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role["metadata"]["name"]}}
            for role in ({k: v for k, v in each.items() if k != "rules"} for each in roles)
        ]  # fmt: skip
        objects: Sequence[dict[str, Any]] = (
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {
                "pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted",
            }}},
            *roles, *bindings,
        )  # fmt: skip
        self.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(objects))

    def helm(
        self, *arguments: str, namespace: str, values: Mapping[str, Any] | None = None,
        hook: str = "", passes: bool = True,
    ) -> Done:  # fmt: skip
        """Runs Helm as `installer`, and ends the hook's Job as a controller would."""
        command = [self.programs["helm"], *arguments, "-n", namespace]
        if values is not None:
            file = self._folder / "values.yaml"
            file.write_text(yaml.safe_dump(dict(values)))
            command += ["-f", str(file)]
        before = self.get("jobs", namespace).get(hook, {}).get("metadata", {}).get("uid")
        log = self._folder / "helm.log"
        child = start_child(command, output=log, environment=self.environment("installer"))
        try:
            if hook:
                self._end_hook(child, hook, namespace, before, passes=passes, log=log)
            assert child.wait(HOOK_SECONDS), log.read_text()
        finally:
            child.kill()
        code = child.exit_code()
        assert code is not None
        return Done(code, log.read_text())

    def run(
        self, *words: str, folder: Path, user: str = "admin", playing: str = "", streams: str = "both",
    ) -> Done:  # fmt: skip
        """Runs a command line of Helm or kubectl in a folder.

        ``playing`` is a namespace in which Jobs and Pods succeed and sets get ready meanwhile; ``streams`` may be
        ``out``, for output without warnings.
        """
        log = self._folder / "command.log"
        with log.open("wb") as sink:
            child = subprocess.Popen(
                [self.programs[words[0]], *words[1:]], cwd=folder, stdout=sink,
                stderr=sink if streams == "both" else subprocess.DEVNULL,
                env=self.environment(user),
            )  # fmt: skip

        def ended() -> bool:
            if child.poll() is None and playing:
                self.play(playing)
            return child.poll() is not None

        try:
            wait_until(
                ended, timeout_seconds=HOOK_SECONDS, interval_seconds=0.5,
                describe=lambda: f"{words} to end\n{log.read_text()}",
            )  # fmt: skip
        finally:
            child.kill()
        return Done(child.wait(20), log.read_text())

    def play(self, namespace: str, *, failing: str = "") -> None:
        """Ends Jobs and Pods and lets sets get ready, as controllers and nodes would; ``failing`` is a Job that fails."""
        for name, job in self.get("jobs", namespace).items():
            if not job["status"].get("conditions"):
                self.end_job(name, namespace, passes=name != failing)
        for name, found in self.get("statefulsets", namespace).items():
            replicas, generation = found["spec"]["replicas"], found["metadata"]["generation"]
            if found["status"].get("observedGeneration") != generation:
                self.set_status("statefulset", name, namespace, {
                    "observedGeneration": generation, "replicas": replicas, "readyReplicas": replicas,
                    "updatedReplicas": replicas, "currentReplicas": replicas, "availableReplicas": replicas,
                    "currentRevision": "1", "updateRevision": "1",
                })  # fmt: skip
        for name, pod in self.get("pods", namespace).items():
            if pod["status"].get("phase") == "Pending":
                self.set_status("pod", name, namespace, {"phase": "Succeeded"})

    def set_status(self, kind: str, name: str, namespace: str, status: Mapping[str, Any]) -> None:
        """Writes a status, as a controller or a kubelet would."""
        self.kubectl(
            "patch", kind, name, "-n", namespace, "--subresource=status", "--type=merge",
            "-p", json.dumps({"status": status}),
        )  # fmt: skip

    def account(self, name: str, namespace: str) -> dict[str, str]:
        """The files that the kubelet mounts for a service account: its token, and who the API server is."""
        return {
            "token": self.kubectl("create", "token", name, "-n", namespace).strip(),
            "ca.crt": (self._folder / "certificates/apiserver.crt").read_text(),
            "namespace": namespace,
        }  # fmt: skip

    def define(self, *kinds: str) -> None:
        """Kinds of somebody's operators, `PLURAL.GROUP`, by the operators' own definitions."""
        for kind in kinds:
            file = definition_file(kind)
            self.kubectl("apply", "--server-side", "-f", str(file))
            wait_until(
                lambda kind=kind: self._established(kind), timeout_seconds=READY_SECONDS,
                describe=f"the kind {kind}",
            )  # fmt: skip

    def _established(self, kind: str) -> bool:
        told = json.loads(self.kubectl("get", "crd", kind, "-o", "json"))["status"]["conditions"]
        return any(each["type"] == "Established" and each["status"] == "True" for each in told or [])  # fmt: skip

    def end_job(self, name: str, namespace: str, *, passes: bool = True) -> None:
        """Writes the status that the Job controller would."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        kinds = ("SuccessCriteriaMet", "Complete") if passes else ("FailureTarget", "Failed")
        conditions = [
            {"type": kind, "status": "True", "reason": "Test", "lastTransitionTime": now} for kind in kinds
        ]  # fmt: skip
        status = {"startTime": now, "conditions": conditions, "ready": 0, "terminating": 0}
        status |= {"succeeded": 1, "completionTime": now} if passes else {"failed": 1}
        self.set_status("job", name, namespace, status)

    def _end_hook(
        self, child: ChildProcess, hook: str, namespace: str, before: str | None, *, passes: bool, log: Path
    ) -> None:  # fmt: skip
        def made() -> bool:
            assert child.exit_code() is None, log.read_text()
            found = self.get("jobs", namespace).get(hook)
            return found is not None and found["metadata"]["uid"] != before

        wait_until(made, timeout_seconds=HOOK_SECONDS, describe=f"the hook {hook}")
        self.end_job(hook, namespace, passes=passes)


def definition_file(kind: str) -> Path:
    """The definition of an operator's kind; skips the test where it was not fetched."""
    file = Path(os.environ.get("KUBE_TOOLS", "")) / "definitions" / f"{kind}.yaml"
    if not file.is_file():
        pytest.skip(f"no definitions/{kind}.yaml in KUBE_TOOLS: deploy/build-kube-tools.sh fetches it")  # fmt: skip
    return file


@contextmanager
def running_api_server(folder: Path, *controllers: str) -> Iterator[ApiServer]:
    """Starts etcd, an API server on free loopback ports, and controllers by name; all end with the block."""
    programs = find_programs(*([CONTROLLERS] if controllers else []))
    etcd_port, peer_port, port = free_ports(3)
    key = folder / "service-accounts.pem"
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key.write_bytes(private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ))  # fmt: skip
    tokens = folder / "tokens.csv"
    tokens.write_text(
        f"{TOKENS['admin']},admin,1,system:masters\n{TOKENS['installer']},installer,2\n"
    )
    etcd = f"http://127.0.0.1:{etcd_port}"
    children = [
        start_child(
            [programs["etcd"], f"--data-dir={folder}/etcd", "--unsafe-no-fsync", "--log-level=error",
             f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}",
             f"--listen-peer-urls=http://127.0.0.1:{peer_port}"],
            output=folder / "etcd.log",
        ),
        start_child(
            [programs["kube-apiserver"], f"--etcd-servers={etcd}", f"--secure-port={port}",
             "--bind-address=127.0.0.1", f"--cert-dir={folder}/certificates", f"--token-auth-file={tokens}",
             "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
             "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
             f"--service-account-signing-key-file={key}",
             # Nothing makes the service account of a namespace here.
             "--disable-admission-plugins=ServiceAccount"],
            output=folder / "api-server.log",
        ),
    ]  # fmt: skip
    server = ApiServer(folder, programs, f"https://127.0.0.1:{port}")
    try:
        wait_until(
            lambda: _ready(server, children, folder), timeout_seconds=READY_SECONDS,
            describe=lambda: f"the API server: {(folder / 'api-server.log').read_text()[-2000:]}",
        )  # fmt: skip
        if controllers:
            config = server.environment("admin")["KUBECONFIG"]
            children.append(start_child(
                [programs[CONTROLLERS], f"--kubeconfig={config}", f"--controllers={','.join(controllers)}",
                 "--leader-elect=false", "--secure-port=0", f"--cert-dir={folder}/certificates"],
                output=folder / "controllers.log",
            ))  # fmt: skip
        yield server
    finally:
        for child in reversed(children):
            child.kill()
            child.wait(20)


def _ready(server: ApiServer, children: Sequence[ChildProcess], folder: Path) -> bool:
    for child, name in zip(children, ("etcd", "api-server"), strict=True):
        assert child.exit_code() is None, (folder / f"{name}.log").read_text()[-3000:]
    try:
        return server.kubectl("get", "--raw", "/readyz") == "ok"
    except AssertionError:
        return False
