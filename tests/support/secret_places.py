"""Every place where a secret could be read, by name: which test looks there.

`tests/unit/test_secrets_are_never_shown.py` forces a secret into a text of each fast place;
`tests/acceptance/test_secrets_stay_hidden.py` reads all others after real work with real secrets.
"""

FAST = (
    "a command's echo of an argument", "the same as JSON", "the same as YAML", "the same with --debug",
    "a result as text", "a result as JSON", "a result as YAML", "a printed line",
    "an error's message", "an error's remedy", "an error's text", "an error's paragraph",
    "a log line", "a traceback in the log", "the output of a hook",
    "an HTTP answer", "an HTTP error body", "an HTTP path that is not there",
    "a report", "a report's page", "an uncaught error", "an uncaught error in a thread",
    "what import-mm2 prints", "a line of the client library",
    "the repr of what is logged in with", "the repr of a token", "the repr of a plan",
    "the topology of the HTTP API", "an order to a lane", "a refused order to a lane",
)  # fmt: skip

WITH_BROKERS = (
    "log of the worker with --debug", "log lines of its lanes", "log lines of its controller",
    "command line of the worker", "environment of the worker",
    "command line of a lane process", "environment of a lane process",
    "replicator status", "replicator status -o json", "replicator status -o yaml",
    "replicator topics -o json", "replicator plan", "replicator plan -o json",
    "replicator check -o json", "replicator validate", "replicator validate -o json",
    "replicator groups -o json", "replicator gaps -o json", "replicator history -o json",
    "replicator switchover --dry-run", "replicator status that is refused",
    "GET /api/v1/status", "GET /api/v1/topology", "GET /api/v1/history", "GET /api/v1/groups",
    "GET /readyz", "GET /livez", "GET /metrics", "GET /", "GET /nowhere",
    "records of the control topic", "records of the checkpoints topic",
    "replicator verify", "page of verify", "event log of Spark",
)  # fmt: skip
