"""Level 4: values that cannot work are refused, by a message that names the value."""

import copy

import pytest
from chart_engine import RefusedValuesError, ci_values, render

LINK = ("topology", "spec", "links", 0)
EAST = ("topology", "spec", "clusters", "east")
SET = ("workers", 0)


def drill_of(link, **more):
    """A drill of the chart's values; ``more`` are fields of its document's spec."""
    spec = {"link": link, "kind": "switchover", "limits": {"maxLostRecords": 0}, **more}
    head = {"apiVersion": "replicator/v1", "kind": "Drill", "metadata": {"name": "m"}}
    return {"name": "m", "schedule": "0 6 1 * *", "drill": {**head, "spec": spec}}


BAD_VALUES = [
    # what it is, the value, what the message has to hold
    ("a value that there is not", {("replicaCount",): 3}, ["replicaCount"]),
    ("a misspelt value deep inside", {("worker", "resorces"): {}}, ["worker", "resorces"]),
    ("a number as text", {("worker", "processes"): "4"}, ["processes", "string"]),
    ("no worker", {("workers",): []}, ["workers"]),
    ("too many lane processes", {("worker", "processes"): 1000}, ["processes", "64"]),
    ("the latest image", {("image", "tag"): "latest"}, ["tag"]),
    ("half a digest", {("image", "digest"): "sha256:abc"}, ["digest"]),
    ("a root user", {("podSecurity", "runAsUser"): 0}, ["runAsUser", "0"]),
    ("a privileged port", {("http", "port"): 80}, ["port"]),
    ("an unknown way to reload", {("reload",): "sometimes"}, ["reload"]),
    ("an unknown autoscaler", {("worker", "autoscaling", "kind"): "vpa"}, ["kind"]),
    ("HPA and KEDA together", {("worker", "autoscaling", "kind"): ["hpa", "keda"]}, ["kind"]),
    ("a user that is a user name", {("podSecurity", "runAsUser"): "nobody"}, ["runAsUser"]),
    ("a budget of more than all", {(*SET, "podDisruptionBudget"): {"maxUnavailable": "120%"}}, ["maxUnavailable"]),
    ("a drill that is no drill document", {("drills",): [{"name": "m", "schedule": "0 6 1 * *", "drill": {"link": "orders-dr", "kind": "failover"}}]}, ["drill", "apiVersion"]),
    ("a misspelt field of a drill", {("drills",): [drill_of("orders-dr", lmits={})]}, ["lmits"]),
    ("no limit of memory", {("worker", "resources", "limits"): {"memory": None}}, ["memory"]),
    ("a secret mounted over the system", {("secretMounts",): [{"existingSecret": "a", "mountPath": "/etc"}]}, ["mountPath"]),
    ("a literal password", {(*EAST, "security"): {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u", "password": "hunter2"}}, ["password"]),
    ("an unknown shape", {(*LINK, "shape"): "round-and-round"}, ["shape"]),
    ("two active clusters", {(*LINK, "active"): ["east", "west"]}, ["active"]),
    ("a misspelt field of a link", {(*LINK, "topcis"): {}}, ["topcis"]),
    ("a field of another shape", {(*LINK, "hub"): "east"}, ["hub"]),
    ("a duration without a unit", {(*LINK, "commitInterval"): "200"}, ["commitInterval"]),
    ("no brokers", {(*EAST, "bootstrapServers"): []}, ["bootstrapServers"]),
    ("an unknown command on history", {("spark",): {"mode": "job", "jobs": [{"name": "x", "command": "rm", "flow": "east->west"}]}}, ["command"]),
    ("a wrong schedule", {("drills",): [{**drill_of("orders-dr"), "schedule": "monthly"}]}, ["schedule"]),
    # what only templates can see
    ("no topology", {("topology",): {}}, ["no topology"]),
    ("two topologies", {("topologyText",): "kind: Topology"}, ["topology and topologyText"]),
    ("text that is no YAML", {("topology",): {}, ("topologyText",): "a: [b"}, ["topologyText is no YAML"]),
    ("a restart that cannot be seen", {("topology",): {}, ("existingTopology", "configMap"): "mine", ("reload",): "restart"}, ["reload: restart", "mine"]),
    ("workers for a cluster that there is not", {(*SET, "cluster"): "wset"}, ["wset", "east, west"]),
    ("workers for a flow that there is not", {(*SET, "flows"): ["east->wset"]}, ["east->wset", "wset"]),
    ("two sets of one name", {("workers",): [{"cluster": "west"}, {"cluster": "west"}]}, ["'west'", "two sets"]),
    ("a name that does not fit", {("workers",): [{"name": "a" * 21}]}, ["name"]),
    ("a grace period shorter than the drain", {("worker", "terminationGracePeriodSeconds"): 25}, ["25", "gracePeriodSeconds 20", "30"]),
    ("a budget that is never met", {(*SET, "podDisruptionBudget"): {"minAvailable": 2, "maxUnavailable": None}}, ["minAvailable 2", "2 replicas"]),
    ("a budget that leaves an autoscaled set no pod to give", {(*SET, "podDisruptionBudget"): {"minAvailable": 1, "maxUnavailable": None}, (*SET, "autoscaling"): {"kind": "hpa"}}, ["minAvailable 1", "1 replicas"]),
    ("a budget of all pods", {(*SET, "podDisruptionBudget"): {"minAvailable": "100%", "maxUnavailable": None}}, ["minAvailable 100%"]),
    ("a share that is all pods once it is rounded up", {(*SET, "podDisruptionBudget"): {"minAvailable": "60%", "maxUnavailable": None}}, ["minAvailable 60%", "2 replicas"]),
    ("a budget of no pod", {(*SET, "podDisruptionBudget", "maxUnavailable"): "0%"}, ["maxUnavailable 0%"]),
    ("both kinds of a budget", {("worker", "podDisruptionBudget", "minAvailable"): 1}, ["minAvailable 1", "maxUnavailable 1"]),
    ("fewer at most than at least", {("worker", "autoscaling"): {"kind": "hpa", "minReplicas": 5}}, ["maxReplicas 4", "minReplicas 5"]),
    ("KEDA that has nobody to ask", {("worker", "autoscaling", "kind"): "keda"}, ["prometheusAddress"]),
    ("every series twice", {("monitoring",): {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}}, ["podMonitor", "serviceMonitor"]),
    ("a secret in the environment", {("worker", "extraEnv"): [{"name": "DB_PASSWORD", "value": "x"}]}, ["DB_PASSWORD", "secretEnv"]),
    ("a secret in the environment of drills", {("drill", "extraEnv"): [{"name": "API_TOKEN", "value": "x"}]}, ["API_TOKEN", "drill"]),
    ("two certificates", {("http", "tls"): {"existingSecret": "mine", "certManager": {"enabled": True, "issuerRef": {"name": "ca"}}}}, ["'mine'", "certManager"]),
    ("a certificate that nobody issues", {("http", "tls"): {"certManager": {"enabled": True}}}, ["issuerRef.name"]),
    ("more threads of Spark than cores", {("spark",): {"mode": "job", "master": "local[8]"}}, ["local[8]", "2 cores"]),
    ("jobs that nobody runs", {("spark", "jobs"): [{"name": "night", "command": "verify", "flow": "east->west"}]}, ["spark.mode", "night"]),
    ("a job for a flow that there is not", {("spark",): {"mode": "job", "jobs": [{"name": "n", "command": "verify", "flow": "north->west"}]}}, ["north->west", "east, west"]),
    ("an archive that says not where", {("spark",): {"mode": "job", "jobs": [{"name": "a", "command": "archive", "cluster": "east", "topics": ["t"]}]}}, ["archive needs archive"]),
    ("an archive of a flow", {("spark",): {"mode": "job", "jobs": [{"name": "a", "command": "archive", "flow": "east->west", "cluster": "east", "archive": "/a", "topics": ["t"]}]}}, ["archive takes no flow"]),
    ("a seed every night", {("spark",): {"mode": "job", "jobs": [{"name": "n", "command": "bulk-sync", "flow": "east->west", "schedule": "0 3 * * *"}]}}, ["bulk-sync", "0 3 * * *"]),
    ("a drill of a link that there is not", {("drills",): [drill_of("orders")]}, ["'orders'", "orders-dr"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "told"), [case[1:] for case in BAD_VALUES], ids=[case[0] for case in BAD_VALUES]
)
def test_it_is_refused_by_name(change, told):
    values = copy.deepcopy(ci_values("minimal"))
    values.setdefault("workers", [{"name": "all", "replicas": 2}])
    for path, value in change.items():
        node = values
        for part in path[:-1]:
            node = node[part] if isinstance(part, int) else node.setdefault(part, {})
        node[path[-1]] = value
    with pytest.raises(RefusedValuesError) as refused:
        render(values)
    for part in told:
        assert part in str(refused.value)


def test_a_password_that_is_refused_is_not_repeated():
    values = ci_values("minimal")
    values["topology"]["spec"]["clusters"]["east"]["security"] = {
        "protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u", "password": "hunter2",
    }  # fmt: skip
    with pytest.raises(RefusedValuesError) as refused:
        render(values)
    assert "hunter2" not in str(refused.value)


def test_several_problems_are_reported_at_once():
    values = ci_values("minimal")
    values["workers"] = [{"cluster": "nowhere", "terminationGracePeriodSeconds": 20}]
    with pytest.raises(RefusedValuesError) as refused:
        render(values)
    assert "nowhere" in str(refused.value)
    assert "terminationGracePeriodSeconds 20" in str(refused.value)
