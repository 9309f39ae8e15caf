"""The Dockerfile's steps as plain commands, as far as that goes without a container engine."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from chart_engine import ROOT
from dockerfile import stages

from replicator.testing import wait_until
from replicator.testing.kit.child_processes import start_child
from replicator.testing.kit.ports import free_ports

IMAGES = stages(ROOT / "deploy" / "Dockerfile")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_worker_image_is_built_step_by_step_started_probed_and_stopped(tmp_path):
    source = tmp_path / "src"
    places = {"/opt/replicator": f"{tmp_path}/opt", "/wheels": f"{tmp_path}/wheels"}
    source.mkdir()
    for word, rest in IMAGES["build"].instructions:
        if word == "COPY":
            *files, target = rest.split()
            for file in files:
                place = source / (target if target not in {"./", "."} else file)
                place.parent.mkdir(parents=True, exist_ok=True)
                if (ROOT / file).is_dir():
                    shutil.copytree(
                        ROOT / file, place, ignore=shutil.ignore_patterns("__pycache__")
                    )
                else:
                    shutil.copy(ROOT / file, place)
        elif word == "RUN":
            run_step(rest, places, source)

    installed = tmp_path / "opt"
    for tool in ("pip", "gcc"):
        assert not (installed / "bin" / tool).exists()
    (entry,) = re.findall(r'\["(.*)"\]', IMAGES["base"].all("ENTRYPOINT")[0])
    topology = tmp_path / "topology.yaml"
    (dead_east, dead_west, port) = free_ports(3)
    text = (ROOT / "topologies" / "active-passive.yaml").read_text()
    topology.write_text(text.replace("9092", str(dead_east)).replace("9094", str(dead_west)))
    child = start_child(
        [installed / "bin" / entry, "run", "-f", topology, f"--http=127.0.0.1:{port}", "--grace=5"],
        output=tmp_path / "worker.log",
    )
    try:
        healthcheck = IMAGES["worker"].all("HEALTHCHECK")[0].partition("CMD ")[2]
        code = re.findall(r'"-c", "(.*)"\]', healthcheck)[0].replace("8080", str(port))
        probe = [installed / "bin/python", "-c", code]
        wait_until(
            lambda: subprocess.run(probe, capture_output=True, check=False).returncode == 0,
            timeout_seconds=90.0,
            interval_seconds=0.5,
            describe=lambda: f"the health check: {(tmp_path / 'worker.log').read_text()[-3000:]}",
        )
        child.signal(signal.SIGTERM)
        assert child.wait(30)
        assert child.exit_code() == 0, (tmp_path / "worker.log").read_text()[-3000:]
    finally:
        child.kill()


def run_step(command, places, source):
    for before, after in places.items():
        command = command.replace(before, after)
    command = re.sub(r"^python ", f"{sys.executable} ", command)
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=source, env=environment, capture_output=True, text=True,
        check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
