"""Strict schemas of objects: Kubernetes' own for several releases, those of operators, and ours."""

import functools
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import referencing
from kubernetes_validate import utils as kubernetes

from replicator.testing.kit.cache import cache_root

OLDEST, NEWEST = "1.28", "1.37"
CRD = Path(__file__).parent / "crd"
CRD_KINDS = {"PodMonitor", "ServiceMonitor", "PrometheusRule", "ScaledObject"}
SPARK_KINDS = {"SparkApplication", "ScheduledSparkApplication"}

Object = dict[str, Any]

_SPARK_ROLE: Object = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "cores": {"type": "integer"},
        "instances": {"type": "integer"},
        "memory": {"type": "string"},
        "serviceAccount": {"type": "string"},
        "template": {"type": "object"},
    },
}
# The fields of sparkoperator.k8s.io/v1beta2 that the chart uses, by their types there.
SPARK_APPLICATION: Object = {
    "type": "object",
    "additionalProperties": False,
    "required": ["type", "sparkVersion", "driver", "executor"],
    "properties": {
        "type": {"enum": ["Java", "Python", "Scala", "R"]},
        "pythonVersion": {"enum": ["2", "3"]},
        "sparkVersion": {"type": "string"},
        "mode": {"enum": ["cluster", "client"]},
        "image": {"type": "string"},
        "imagePullPolicy": {"type": "string"},
        "mainApplicationFile": {"type": "string"},
        "arguments": {"type": "array", "items": {"type": "string"}},
        "sparkConf": {"type": "object", "additionalProperties": {"type": "string"}},
        "restartPolicy": {"type": "object", "properties": {"type": {"enum": ["Never"]}}},
        "driver": _SPARK_ROLE,
        "executor": _SPARK_ROLE,
    },
}
SCHEDULED_SPARK_APPLICATION: Object = {
    "type": "object",
    "additionalProperties": False,
    "required": ["schedule", "template"],
    "properties": {
        "schedule": {"type": "string"},
        "timeZone": {"type": "string"},
        "suspend": {"type": "boolean"},
        "concurrencyPolicy": {"enum": ["Allow", "Forbid", "Replace"]},
        "template": SPARK_APPLICATION,
    },
}
# The fields of cert-manager.io/v1 that the chart uses.
CERTIFICATE: Object = {
    "type": "object",
    "additionalProperties": False,
    "required": ["secretName", "issuerRef", "dnsNames"],
    "properties": {
        "secretName": {"type": "string"},
        "usages": {"type": "array", "items": {"enum": ["server auth"]}},
        "dnsNames": {"type": "array", "items": {"type": "string"}},
        "issuerRef": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "properties": {name: {"type": "string"} for name in ("name", "kind", "group")},
        },
    },
}


def problem(each: Object, version: str) -> str:
    """What a Kubernetes release has against an object; nothing when it is fine."""
    if each["kind"] in CRD_KINDS:
        return _crd_problems((json.dumps(each),))[0] or ""
    if each["kind"] == "Certificate":
        return _first(jsonschema.Draft202012Validator(CERTIFICATE), each["spec"])
    if each["kind"] in SPARK_KINDS:
        scheduled = each["kind"] == "ScheduledSparkApplication"
        schema = SCHEDULED_SPARK_APPLICATION if scheduled else SPARK_APPLICATION
        return _first(jsonschema.Draft202012Validator(schema), each["spec"])
    return _first(_core_validator(each["apiVersion"], each["kind"], version), each)


def pod_problem(pod: Object, version: str) -> str:
    """The same for a pod template that stands in an object of an operator."""
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"], "spec": pod["spec"]}
    return problem(whole, version)


def _first(validator: Any, each: Object) -> str:
    error = next(validator.iter_errors(each), None)
    return "" if error is None else f"{error.json_path}: {error.message}"


@functools.cache
def _core_validator(api_version: str, kind: str, version: str) -> Any:
    group = api_version.split("/")
    place = group[0] if len(group) == 1 else f"{group[0].split('.')[0]}-{group[1]}"
    folder = f"kubernetes-json-schema/v{version}.0-local-strict"
    schema = kubernetes.schema_contents(f"{folder}/{kind.lower()}-{place}.json", version)
    registry = referencing.Resource.from_contents(schema) @ _definitions(folder, version)
    return jsonschema.Draft202012Validator(schema, registry=registry)


@functools.cache
def _definitions(folder: str, version: str) -> Any:
    contents = kubernetes.schema_contents(f"{folder}/_definitions.json", version)
    return referencing.Resource.from_contents(contents) @ referencing.Registry()


@functools.cache
def _crd_problems(objects: tuple[str, ...]) -> list[str | None]:
    answer = subprocess.run(
        ["node", _crd_validators() / "validate.mjs"],
        input="\n".join(objects) + "\n", capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.splitlines()]


@functools.cache
def _crd_validators() -> Path:
    """The validators of operators' kinds, installed once into the cache by npm and its lock file."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.fail(
                f"'{tool}' is missing: objects of the Prometheus operator and KEDA cannot be "
                "checked. Install Node.js 20 or newer (Debian: apt install nodejs npm; macOS: "
                "brew install node)."
            )
    files = [CRD / name for name in ("package.json", "package-lock.json", "validate.mjs")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    place = cache_root() / f"chart-schemas-{digest}"
    if not place.exists():
        fresh = place.with_name(f"{place.name}.{os.getpid()}")
        fresh.mkdir(parents=True)
        for file in files:
            shutil.copy(file, fresh)
        done = subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"],
            cwd=fresh, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
        if done.returncode != 0:
            shutil.rmtree(fresh)
            pytest.fail(f"npm could not fetch the validators of tests/chart/crd: {done.stderr}")
        try:
            fresh.rename(place)
        except OSError:  # another process of this run was faster
            shutil.rmtree(fresh)
    return place
