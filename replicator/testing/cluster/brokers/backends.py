"""What local brokers run in: JVMs started from Maven jars, or containers where asked for.

``REPLICATOR_TEST_BACKEND=containers`` asks for containers; anything they lack is an error that says
so, never a silent change of backend, or a green run would not mean what it says.
"""

import os

from replicator.errors import InputError
from replicator.testing.cluster.brokers.broker import Backend, Broker, BrokerSpec, LocalBroker
from replicator.testing.cluster.brokers.class_archive import class_archive_flags
from replicator.testing.cluster.brokers.jars import broker_jars
from replicator.testing.kit.place import HERE, Place

VARIABLE = "REPLICATOR_TEST_BACKEND"


def jar_backend() -> Backend:
    """Makes brokers as JVMs of this machine.

    Raises:
        InputError: Java or Maven is missing.
    """
    jars = broker_jars()
    archive = class_archive_flags(jars)

    def broker(spec: BrokerSpec) -> Broker:
        # The archive was made under the fast-start flags; with others it is not used anyway.
        return LocalBroker(spec, jars=jars, flags=archive if spec.jvm == "fast-start" else ())

    return broker


def choose_backend(place: Place = HERE) -> Backend:
    """The backend the environment asks for, ready to use at that place.

    Raises:
        InputError: it can not be used here, with the reason.
    """
    asked = os.environ.get(VARIABLE, "jars")
    if asked == "jars":
        return jar_backend()
    if asked == "containers":
        if place != HERE:
            raise InputError(
                "containers run on this machine's loopback only",
                subject=VARIABLE,
                remedy="Use jars for clusters at the far end of a line.",
            )
        from replicator.testing.cluster.brokers.containers import container_backend

        return container_backend()
    raise InputError(f"'{asked}' is no backend", subject=VARIABLE, remedy="Use jars or containers.")
