"""The chart's values.schema.json: types from values.yaml, bounds from here, the topology from the program.

Closed everywhere but where Kubernetes' own objects are passed on: those the API server checks.
"""

import json
from pathlib import Path
from typing import Any

from values_file import documented_values, load_values

from replicator.drill.file.load import drill_schema
from replicator.topology.file.schema import topology_schema

Schema = dict[str, Any]

NAME = {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "maxLength": 63}
OBJECT_NAME = {
    "type": "string",
    "pattern": "^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*)?$",
    "maxLength": 253,
}
NEEDED_NAME = {**OBJECT_NAME, "minLength": 1}
NAME_OF_KIND: Schema = {"type": "string", "pattern": "^[A-Z][A-Za-z]*$"}
SET_NAME = {**NAME, "maxLength": 20}
SHORT_NAME = {**NAME, "maxLength": 24}
FLOW = {"type": "string", "pattern": "^[a-z0-9-]+->[a-z0-9-]+$"}
TAG = {"type": "string", "not": {"const": "latest"}, "pattern": "^[A-Za-z0-9_.-]{0,128}$"}
DIGEST = {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}
QUANTITY = {
    "type": ["string", "integer"],
    "pattern": "^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$",
}
OBJECT: Schema = {"type": "object"}
OBJECTS: Schema = {"type": "array", "items": OBJECT}
TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
TEXT_MAP: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
SCHEDULE = {"type": "string", "pattern": "^(@[a-z]+|\\S+ \\S+ \\S+ \\S+ \\S+)$"}
ID: Schema = {"type": ["integer", "null"], "minimum": 1}
POD_COUNT: Schema = {
    "type": ["integer", "string", "null"],
    "minimum": 1,
    "pattern": "^(100|[0-9]{1,2})%$",
}
SECONDS: Schema = {"type": "integer", "minimum": 10, "maximum": 86400}
SHARE: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}


def _closed(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    closed: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name.rstrip("_"): schema for name, schema in properties.items()},
    }
    return {**closed, "required": list(required)} if required else closed


RESOURCES = _closed(
    requests={"type": "object", "additionalProperties": QUANTITY},
    limits={
        "type": "object",
        "additionalProperties": QUANTITY,
        "required": ["memory"],
    },
)
PROBE = _closed(
    **{
        name: {"type": "integer", "minimum": 1 if name != "initialDelaySeconds" else 0}
        for name in ("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold")
    }
)
MOUNT_PATH: Schema = {"type": "string", "pattern": "^/etc/replicator/[^ ]+$"}

# What a type alone does not say, by the value's path.
BOUNDS: dict[str, Schema] = {
    "imagePullSecrets": {"type": "array", "items": _closed(("name",), name=NEEDED_NAME)},
    "commonLabels": TEXT_MAP,
    "image.tag": TAG,
    "image.digest": DIGEST,
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "topology": {
        "type": ["object", "null"],
        "if": {"type": "object", "minProperties": 1},
        "then": {"$ref": "#/$defs/Topology"},
    },
    "existingTopology.configMap": OBJECT_NAME,
    "site": {"type": "string", "pattern": "^([A-Za-z0-9][A-Za-z0-9_-]{0,39})?$"},
    "reload": {"enum": ["watch", "restart"]},
    "secretMounts": {
        "type": "array",
        "items": _closed(
            ("existingSecret", "mountPath"), existingSecret=NEEDED_NAME, mountPath=MOUNT_PATH
        ),
    },
    "secretEnv": {
        "type": "array",
        "items": _closed(
            ("name", "existingSecret", "key"),
            name={"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
            existingSecret=NEEDED_NAME,
            key={"type": "string", "minLength": 1},
        ),
    },
    "worker.replicas": {"type": "integer", "minimum": 0, "maximum": 256},
    "worker.processes": {"type": "integer", "minimum": 1, "maximum": 64},
    "worker.gracePeriodSeconds": {"type": "integer", "minimum": 1, "maximum": 3600},
    "worker.terminationGracePeriodSeconds": {"type": "integer", "minimum": 11, "maximum": 3700},
    "worker.resources": RESOURCES,
    "worker.startupProbe": PROBE,
    "worker.livenessProbe": PROBE,
    "worker.readinessProbe": PROBE,
    "worker.podDisruptionBudget.maxUnavailable": POD_COUNT,
    "worker.podDisruptionBudget.minAvailable": POD_COUNT,
    "worker.autoscaling.kind": {"enum": ["none", "hpa", "keda"]},
    "worker.autoscaling.minReplicas": {"type": "integer", "minimum": 1, "maximum": 256},
    "worker.autoscaling.maxReplicas": {"type": "integer", "minimum": 1, "maximum": 256},
    "worker.autoscaling.lagSeconds": {"type": "integer", "minimum": 1},
    "worker.autoscaling.prometheusAddress": {"type": "string", "pattern": "^(https?://.+)?$"},
    "worker.autoscaling.authentication.name": OBJECT_NAME,
    "worker.autoscaling.authentication.kind": {
        "enum": ["TriggerAuthentication", "ClusterTriggerAuthentication"]
    },
    "worker.autoscaling.scaleDownAfterSeconds": {
        "type": "integer",
        "minimum": 60,
        "maximum": 3600,
    },
    "worker.topologySpreadConstraints": OBJECTS,
    "worker.extraArgs": TEXTS,
    "http.token.existingSecret": OBJECT_NAME,
    "http.tls.existingSecret": OBJECT_NAME,
    "http.tls.certManager.issuerRef": {
        **_closed(name=NEEDED_NAME, kind=NAME_OF_KIND, group=OBJECT_NAME),
    },
    "http.tls.certManager.dnsNames": TEXTS,
    "http.port": {**PORT, "minimum": 1024},
    "service.type": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
    "service.port": PORT,
    "service.annotations": TEXT_MAP,
    "podSecurity.runAsUser": ID,
    "podSecurity.runAsGroup": ID,
    "podSecurity.fsGroup": ID,
    "serviceAccount.annotations": TEXT_MAP,
    "validation.resources": RESOURCES,
    "validation.timeoutSeconds": SECONDS,
    "tests.resources": {"if": {"minProperties": 1}, "then": RESOURCES},
    "drill.resources": RESOURCES,
    "drill.startingDeadlineSeconds": SECONDS,
    "drill.terminationGracePeriodSeconds": SECONDS,
    "drill.reports.size": QUANTITY,
    "drill.reports.accessModes": TEXTS,
    "drill.reports.existingClaim": OBJECT_NAME,
    "drill.reports.volume": OBJECT,
    "tests.timeoutSeconds": {"type": "integer", "minimum": 10, "maximum": 3600},
    "networkPolicy.ingressFrom": OBJECTS,
    "networkPolicy.monitoringNamespaces": {"type": "array", "items": NAME},
    "networkPolicy.egress": OBJECTS,
    "networkPolicy.dnsTo": OBJECTS,
    "monitoring.podMonitor.labels": TEXT_MAP,
    "monitoring.podMonitor.intervalSeconds": {"type": "integer", "minimum": 5, "maximum": 120},
    "monitoring.serviceMonitor.labels": TEXT_MAP,
    "monitoring.serviceMonitor.intervalSeconds": {"type": "integer", "minimum": 5, "maximum": 120},
    "monitoring.prometheusRule.labels": TEXT_MAP,
    "monitoring.prometheusRule.alertLabels": TEXT_MAP,
    "monitoring.prometheusRule.runbookBaseUrl": {"type": "string", "minLength": 1},
    "monitoring.prometheusRule.thresholds.lagSlowShare": SHARE,
    "monitoring.prometheusRule.thresholds.lagFastShare": SHARE,
    "monitoring.dashboards.annotations": TEXT_MAP,
    "spark.mode": {"enum": ["none", "job", "operator"]},
    "spark.image.tag": TAG,
    "spark.image.digest": DIGEST,
    "spark.master": {"type": "string", "pattern": "^(local(\\[(\\*|[0-9]+)\\])?|k8s://.+)$"},
    "spark.conf": {
        "type": "object",
        "propertyNames": {"pattern": "^spark\\."},
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    },
    "spark.executors": {"type": "integer", "minimum": 1},
    "spark.resources": RESOURCES,
    "spark.scratchSize": QUANTITY,
    "spark.serviceAccount.annotations": TEXT_MAP,
    "spark.startingDeadlineSeconds": SECONDS,
    "spark.jobs": {
        "type": "array",
        "items": _closed(
            ("name", "command"),
            name=SHORT_NAME,
            command={"enum": ["bulk-sync", "verify", "archive"]},
            flow=FLOW,
            cluster={"type": "string"},
            archive={"type": "string"},
            topics=TEXTS,
            schedule=SCHEDULE,
            timeZone={"type": "string"},
            suspend={"type": "boolean"},
            retries={"type": "integer", "minimum": 0, "maximum": 10},
            run={"type": "integer", "minimum": 1},
            args=TEXTS,
        ),
    },
    "drills": {
        "type": "array",
        "items": _closed(
            ("name", "schedule", "drill"),
            name=SHORT_NAME,
            schedule=SCHEDULE,
            timeZone={"type": "string"},
            suspend={"type": "boolean"},
            drill={"$ref": "#/$defs/Drill"},
        ),
    },
    "extraObjects": OBJECTS,
}


# What every kind of pod may be given.
_POD: dict[str, Schema] = {
    "podLabels": TEXT_MAP,
    "podAnnotations": TEXT_MAP,
    "nodeSelector": TEXT_MAP,
    "tolerations": OBJECTS,
    "affinity": OBJECT,
    "serviceAccountName": OBJECT_NAME,
    "extraEnv": {"type": "array", "items": {"type": "object", "required": ["name"]}},
    "extraEnvFrom": OBJECTS,
    "extraVolumes": OBJECTS,
    "extraVolumeMounts": {"type": "array", "items": {"type": "object", "required": ["mountPath"]}},
    "initContainers": OBJECTS,
    "sidecars": OBJECTS,
}
PODS = ("pods", "worker", "validation", "tests", "drill", "spark")
BOUNDS |= {
    f"{block}.{field}": schema
    for block in PODS
    for field, schema in _POD.items()
    if (block, field) != ("spark", "serviceAccountName")  # it has `serviceAccount`
}


def schema_text(values_file: Path) -> str:
    """The schema as it is committed."""
    descriptions = {value.name: value.description for value in documented_values(values_file)}
    values = load_values(values_file)
    unknown = BOUNDS.keys() - set(_paths(values, ""))
    if unknown:
        raise ValueError(f"bounds of values that there are not: {sorted(unknown)}")
    root = _schema(values, "", descriptions)
    entry = root["properties"]["worker"]
    root["properties"]["workers"] = {
        "type": "array",
        "minItems": 1,
        "description": descriptions["workers"],
        "items": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "name": SET_NAME,
                "cluster": NAME,
                "flows": {"type": "array", "minItems": 1, "items": FLOW},
                **entry["properties"],
            },
        },
    }
    root["properties"]["global"] = {
        "type": "object",
        "description": "Set by parent charts; other charts have fields of their own in it.",
        "properties": {
            "imageRegistry": {"type": "string"},
            "imagePullSecrets": {"type": "array", "items": {"type": ["string", "object"]}},
            "storageClass": {"type": "string"},
        },
        "additionalProperties": True,
    }
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the replicator chart",
        **root,
        "$defs": {
            **_definitions("Topology", topology_schema()),
            **_definitions("Drill", drill_schema()),
        },
    }
    return json.dumps(document, indent=1) + "\n"


def _paths(node: object, path: str) -> list[str]:
    below = node.items() if isinstance(node, dict) else ()
    return [path, *(deep for key, value in below for deep in _paths(value, _join(path, key)))]


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _schema(node: object, path: str, descriptions: dict[str, str]) -> Schema:
    described = {"description": descriptions[path]} if path in descriptions else {}
    if path in BOUNDS:
        return {**described, **BOUNDS[path]}
    if isinstance(node, dict):
        return {
            **described,
            "type": "object",
            "additionalProperties": False,
            "properties": {
                key: _schema(value, _join(path, key), descriptions) for key, value in node.items()
            },
        }
    if isinstance(node, list):
        return described  # `workers` alone: its items are made of `worker`
    if isinstance(node, bool):
        return {**described, "type": "boolean"}
    if isinstance(node, int | float):
        return {**described, **POSITIVE}
    return {**described, "type": "string"}


def _definitions(name: str, whole: Schema) -> Schema:
    """A schema of the program, with choices that answer by the branch that was meant."""
    root = {key: value for key, value in whole.items() if key not in {"$schema", "$defs"}}
    definitions = {each: _chosen(node, whole) for each, node in whole["$defs"].items()}
    return {name: _chosen(root, whole), **definitions}


def _chosen(node: Any, root: Schema) -> Any:
    """Turns alternatives that a constant field tells apart into one `if` each.

    Otherwise one wrong field of a link is reported as the failure of every shape there is.
    """
    if isinstance(node, list):
        return [_chosen(each, root) for each in node]
    if not isinstance(node, dict):
        return node
    node = {key: _chosen(value, root) for key, value in node.items()}
    field = next((name for name in ("shape", "method") if _told_apart(node, name, root)), None)
    if field is None:
        return node
    branches = node.pop("oneOf")
    constants = [_target(branch, root)["properties"][field]["const"] for branch in branches]
    node["type"] = "object"
    node["required"] = [field]
    node["properties"] = {field: {"enum": constants}}
    node["allOf"] = [
        {"if": {"properties": {field: {"const": constant}}, "required": [field]}, "then": branch}
        for constant, branch in zip(constants, branches, strict=True)
    ]
    return node


def _target(branch: Schema, root: Schema) -> Schema:
    if "$ref" not in branch:
        return branch
    target: Schema = root["$defs"][branch["$ref"].removeprefix("#/$defs/")]
    return target


def _told_apart(node: Schema, field: str, root: Schema) -> bool:
    branches = node.get("oneOf")
    return bool(branches) and all(
        "const" in _target(branch, root).get("properties", {}).get(field, {}) for branch in branches
    )
