"""The container engine of this machine, and the images built with it by the project's own target."""

import json
import os
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replicator import __version__
from replicator.testing.cluster.brokers.jars import broker_jars, kafka_version, mirror_jars

ROOT = Path(__file__).resolve().parents[2]
BUILD_SECONDS = 1800.0
ANSWER_SECONDS = 120.0
PROCESS_LIMIT = 4096
LOCAL_BASE = "localhost/replicator-test-base:bookworm"
MIRROR_SETTINGS = (
    ("PIP_CONF", "/etc/pip.conf"),
    ("CA_FILE", "/etc/ssl/certs/ca-certificates.crt"),
)
"""What this machine needs to reach its package index; given to builds as secrets, never kept."""

PODMAN_PROGRAMS = (Path("/usr/libexec/podman"), Path("/usr/lib/podman"))
NETWORK_PROGRAMS = ("netavark", "aardvark-dns")
"""By which containers of Podman find each other by name; Debian's package only recommends them."""


@dataclass(frozen=True)
class Engine:
    """A container engine that answers, and the environment it is called with."""

    program: str
    environment: dict[str, str]

    @property
    def podman(self) -> bool:
        return self.program == "podman"

    def run(
        self, *arguments: str, check: bool = True, timeout: float = ANSWER_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """One command of the engine."""
        done = subprocess.run(
            [self.program, *arguments], capture_output=True, text=True, check=False,
            timeout=timeout, env={**os.environ, **self.environment},
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
        return done

    def confined(
        self, image: str, *arguments: str, user: str, flags: tuple[str, ...] = (), **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program of an image as the chart confines it, and waits for its end."""
        no_entry = ("--passwd=false",) if self.podman else ()
        return self.run(
            "run", "--rm", "--network=host", "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL",
            "--security-opt=no-new-privileges", "--no-healthcheck", f"--user={user}", *no_entry,
            *flags, image, *arguments, **options,
        )  # fmt: skip

    def remove(self, container: str) -> None:
        self.run("rm", "--force", container, check=False)

    def inspect(self, image: str) -> dict[str, object]:
        (found,) = json.loads(self.run("image", "inspect", image).stdout)
        return dict(found)

    def has(self, image: str) -> bool:
        return self.run("image", "inspect", image, check=False).returncode == 0


def make_kafka_image(engine: Engine, folder: Path) -> str:
    """Kafka's image: pulled, or made from the jars of local brokers on the Java of the Spark image."""
    image = f"docker.io/apache/kafka:{kafka_version()}"
    if engine.has(image) or engine.run("pull", image, check=False).returncode == 0:
        return image
    context = folder / "kafka"
    shutil.copytree(ROOT / "tests/images/kafka", context)
    for jars in (broker_jars(), mirror_jars()):
        shutil.copytree(jars.directory, context / "libs", dirs_exist_ok=True)
    engine.run(
        "build", "--network=host", f"--build-arg=JAVA_IMAGE=replicator/spark:{__version__}",
        "-t", image, str(context), timeout=BUILD_SECONDS,
    )  # fmt: skip
    return image


def find_engine(folder: Path) -> Engine:
    """The engine that `make images` takes; skips the test where there is none."""
    found = subprocess.run(
        [ROOT / "deploy/find-engine.sh"], capture_output=True, text=True, check=False
    )
    program = found.stdout.strip()
    if found.returncode != 0:
        pytest.skip(found.stderr.strip())
    if program == "buildah":
        pytest.skip("Buildah builds images and does not run them")
    if program != "podman":
        return Engine(program, {})
    settings = folder / "containers.conf"
    settings.write_text(podman_settings())
    return Engine(program, {"CONTAINERS_CONF": str(settings)})


def missing_network_programs(folders: tuple[Path, ...] = PODMAN_PROGRAMS) -> list[str]:
    """What Podman lacks for containers that find each other by name."""
    return [
        name for name in NETWORK_PROGRAMS
        if not any((folder / name).exists() for folder in folders)
    ]  # fmt: skip


def podman_settings() -> str:
    """Podman's settings where it runs without systemd, with limits it may not raise or on old cgroups."""
    # Podman asks for a million files and processes, which not every machine lets its root have.
    limits = [
        f'"{name}={min(PROCESS_LIMIT, hard)}:{min(PROCESS_LIMIT, hard)}"'
        for name, number in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC))
        if (hard := resource.getrlimit(number)[1]) != resource.RLIM_INFINITY
    ]
    lines = ["[containers]", f"default_ulimits = [{', '.join(limits)}]", "[engine]"]
    if shutil.which("runc") and not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        lines.append('runtime = "runc"')  # crun wants cgroups of version 2
    if not Path("/run/systemd/system").exists():
        lines += ['cgroup_manager = "cgroupfs"', 'events_logger = "file"']
    if not missing_network_programs():
        lines += ["[network]", 'network_backend = "netavark"']
    return "\n".join(lines) + "\n"


def python_image(engine: Engine, folder: Path) -> str:
    """The base image: the Dockerfile's, or one made of Debian's packages where nothing can be pulled.

    Empty is the Dockerfile's own.
    """
    if os.environ.get("PYTHON_IMAGE"):
        return os.environ["PYTHON_IMAGE"]
    if engine.has(LOCAL_BASE):
        return LOCAL_BASE
    (line,) = (
        line for line in (ROOT / "deploy/Dockerfile").read_text().splitlines()
        if line.startswith("ARG PYTHON_IMAGE=")
    )  # fmt: skip
    pulled = engine.run("pull", line.partition("=")[2], check=False, timeout=BUILD_SECONDS)
    if pulled.returncode == 0:
        return ""
    if shutil.which("mmdebstrap") is None:
        pytest.skip(f"the base image cannot be pulled ({pulled.stderr.strip()[-200:]}), and there is no mmdebstrap to make one")  # fmt: skip
    archive = folder / "base.tar"
    done = subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3,python3-venv,ca-certificates",
         '--customize-hook=ln -s python3 "$1/usr/bin/python"', "bookworm", archive],
        capture_output=True, text=True, check=False, timeout=BUILD_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    engine.run("import", str(archive), LOCAL_BASE, timeout=BUILD_SECONDS)
    archive.unlink()
    return LOCAL_BASE


def build_images(
    engine: Engine,
    base: str,
    *,
    prefix: str = "",
    targets: tuple[str, ...] = (),
    flags: str = "",
    **settings_of_the_script: str,
) -> None:
    """`make images`, as a person runs it; or only some of them, by the script behind it."""
    settings = {name: path for name, path in MIRROR_SETTINGS if Path(path).exists()}
    environment = {
        **os.environ, **engine.environment, **settings, "ENGINE": engine.program,
        "BUILD_FLAGS": f"--network host {flags}", **({"PYTHON_IMAGE": base} if base else {}),
        **({"IMAGE_PREFIX": prefix} if prefix else {}), **settings_of_the_script,
    }  # fmt: skip
    done = subprocess.run(
        ["deploy/build-images.sh", *targets] if targets else ["make", "images"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        timeout=BUILD_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
