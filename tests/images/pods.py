"""A kubelet in miniature: runs a pod that the chart rendered, on the pod's own security context.

What a container engine can do of it is done: users and groups, a read-only root, no capabilities, no new
privileges, limits of memory, volumes owned by `fsGroup`, the environment. Pods share the host's network,
where the brokers are.
"""

import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chart_engine import Rendered
from engine import Engine

from replicator.testing.kit.child_processes import ChildProcess, start_child

ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
PLATFORM_USER = "1000690000"
"""As OpenShift gives, where the pod names none: no passwd entry, no group but 0."""

_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "": 1}


def quantity(text: str) -> int:
    """Bytes of a Kubernetes quantity."""
    found = re.fullmatch(r"(\d+)(Ki|Mi|Gi|)", text)
    assert found, text
    return int(found[1]) * _UNITS[found[2]]


@dataclass
class Kubelet:
    """Runs pods of one rendering of the chart.

    Attributes:
        engine: what runs containers.
        rendered: where ConfigMaps come from.
        folder: holds the volumes of all pods.
        secrets: content of Secrets by name and key.
        config_maps: content of ConfigMaps that the chart did not render.
        account: files of a service account's token, for pods that ask for it.
    """

    engine: Engine
    rendered: Rendered
    folder: Path
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    account: Mapping[str, str] = field(default_factory=dict)

    def start(
        self, pod: Mapping[str, Any], *, name: str, log: Path, container_name: str = ""
    ) -> "Pod":
        """Starts the pod's first container, or another one by name; its output goes to the log."""
        spec = pod["spec"]
        container = next(
            each for each in spec["containers"] if container_name in {"", each["name"]}
        )
        place = self.folder / name
        place.mkdir(parents=True, exist_ok=True)
        # A name of its own: engines of other tests run beside this one.
        unique = f"{name}-{uuid.uuid4().hex[:8]}"
        security = spec["securityContext"]
        user = str(security.get("runAsUser", PLATFORM_USER))
        group = str(security.get("runAsGroup", 0))
        assert user != "0"
        assert security["runAsNonRoot"]
        variables = self._variables(container, pod_name=name)
        command = [
            self.engine.program, "run", "--rm", "--name", unique, "--hostname", name,
            *(f"--add-host={each}:127.0.0.1" for each in (name, *self._services())),
            "--network", "host", "--user", f"{user}:{group}", *self._confined(container),
            *(["--passwd=false", "--no-healthcheck"] if self.engine.podman else ["--no-healthcheck"]),
        ]  # fmt: skip
        owner = str(security.get("fsGroup", group))
        if owner != group:
            command += ["--group-add", owner]
        volumes = {each["name"]: each for each in spec.get("volumes", [])}
        for mount in container.get("volumeMounts", []):
            source = self._volume(volumes[mount["name"]], place, owner=int(owner))
            if mount.get("subPath"):
                source /= mount["subPath"]
            mode = ":ro" if mount.get("readOnly") else ""
            command += ["--volume", f"{source}:{mount['mountPath']}{mode}"]
        if self.account and spec.get("automountServiceAccountToken"):
            token = place / "account"
            token.mkdir()
            _write(token, self.account, None)
            _owned(token, int(owner))
            command += ["--volume", f"{token}:{ACCOUNT_FOLDER}:ro"]
        for variable, value in variables.items():
            command += ["--env", f"{variable}={value}"]
        if container.get("command"):
            command += ["--entrypoint", container["command"][0]]
        words = [*container.get("command", [])[1:], *container.get("args", [])]
        command += [container["image"], *(_expanded(word, variables) for word in words)]
        child = start_child(command, output=log, environment=self.engine.environment)
        return Pod(self.engine, unique, child, log)

    def finish(
        self, pod: Mapping[str, Any], *, name: str, seconds: float, container_name: str = ""
    ) -> tuple[int, str]:
        """Runs a pod that ends by itself; its exit code and what it said."""
        log = self.folder / f"{name}.log"
        running = self.start(pod, name=name, log=log, container_name=container_name)
        try:
            assert running.child.wait(seconds), (
                f"not done in {seconds} s\n{log.read_text()[-3000:]}"
            )
        finally:
            self.engine.remove(running.name)
        code = running.child.exit_code()
        assert code is not None
        return code, log.read_text(errors="replace")

    def _services(self) -> list[str]:
        """Names under which pods of the release are reached: all of them are on this host."""
        return [each["metadata"]["name"] for each in self.rendered.kind("Service")]

    def _confined(self, container: Mapping[str, Any]) -> list[str]:
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        flags = ["--security-opt", "no-new-privileges"]
        flags += [f"--cap-drop={each}" for each in security["capabilities"]["drop"]]
        if security["readOnlyRootFilesystem"]:
            flags.append("--read-only")
            if self.engine.podman:  # which makes /tmp writable by itself
                flags.append("--read-only-tmpfs=false")
        limits = container["resources"]["limits"]
        memory = str(quantity(limits["memory"]))
        flags += ["--memory", memory, "--memory-swap", memory]
        if "cpu" in limits:
            flags += ["--cpus", str(limits["cpu"])]
        return flags

    def _variables(self, container: Mapping[str, Any], *, pod_name: str) -> dict[str, str]:
        fields = {
            "metadata.name": pod_name, "metadata.namespace": "streams", "status.podIP": "127.0.0.1",
            "spec.nodeName": "node-1",
        }  # fmt: skip
        found: dict[str, str] = {}
        for each in container.get("env", []):
            origin = each.get("valueFrom", {})
            if "fieldRef" in origin:
                value = fields[origin["fieldRef"]["fieldPath"]]
            elif "secretKeyRef" in origin:
                value = self.secrets[origin["secretKeyRef"]["name"]][origin["secretKeyRef"]["key"]]
            else:
                value = _expanded(str(each.get("value", "")), found)
            found[each["name"]] = value
        return found

    def _volume(self, volume: Mapping[str, Any], place: Path, *, owner: int) -> Path:
        (kind,) = volume.keys() - {"name"}
        what = volume[kind]
        target = place / volume["name"]
        if kind == "persistentVolumeClaim":
            target = self.folder / "claims" / what["claimName"]
        if not target.exists():
            target.mkdir(parents=True)
            if kind == "configMap":
                rendered = {
                    e["metadata"]["name"]: e["data"] for e in self.rendered.kind("ConfigMap")
                }
                data = {**rendered, **self.config_maps}[what["name"]]
                _write(target, data, what.get("items"))
            elif kind == "secret":
                _write(target, self.secrets[what["secretName"]], what.get("items"))
            else:
                assert kind in {"emptyDir", "persistentVolumeClaim"}, kind
            _owned(target, owner)
        return target


@dataclass
class Pod:
    """A container under way; the child is the engine's own client, which passes its exit code on."""

    engine: Engine
    name: str
    child: ChildProcess
    log: Path

    def signal(self, name: str) -> None:
        """Sends a signal to the first process, as the kubelet does."""
        self.engine.run("kill", "--signal", name, self.name)

    def end(self) -> None:
        """Removes it, whatever it does."""
        self.engine.remove(self.name)
        self.child.kill()

    def inside(self, *command: str) -> str:
        """Output of a command inside the container."""
        return self.engine.run("exec", self.name, *command).stdout


def pod_of(rendered: Rendered, kind: str, name: str) -> dict[str, Any]:
    """The pod template of the object whose name ends so, or that pod itself."""
    (found,) = (
        each for each in rendered.kind(kind) if each["metadata"]["name"].endswith(name)
    )  # fmt: skip
    if kind == "Pod":
        return dict(found)
    spec = found["spec"]
    template: dict[str, Any] = (spec["jobTemplate"]["spec"] if kind == "CronJob" else spec)[
        "template"
    ]
    return template


def _write(target: Path, data: Mapping[str, str], items: list[dict[str, str]] | None) -> None:
    for key, path in ((i["key"], i["path"]) for i in items) if items else ((k, k) for k in data):
        (target / path).write_text(data[key])


def _owned(folder: Path, group: int) -> None:
    """Gives a volume to a group, as `fsGroup` has it."""
    for each in (folder, *folder.rglob("*")):
        if os.geteuid() == 0:
            os.chown(each, 0, group)
        each.chmod(0o2775 if each.is_dir() else 0o640)


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda found: variables.get(found[1], found[0]), text)
