"""The data source for notebooks and scripts: registered, with errors as one sentence.

What a reader raises comes back inside the text of Java and Python errors, forty lines of it. Here is what shows the
sentence instead: in a notebook (IPython) and where a script ends with the error. ``except`` sees what Spark raises, as always.
"""

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from replicator.spark.base.failures import said_by_a_task
from replicator.spark.source.data_source import KafkaDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def register(session: "SparkSession") -> None:
    """Makes ``replicator-kafka`` known to a session; errors of it are shown as one sentence from now on.

    On a local master tasks use this very Python, unless another one was named: Spark's own choice is the ``python3``
    on PATH, which is not that of an environment that was not activated.
    """
    context = session.sparkContext
    named = os.environ.get("PYSPARK_PYTHON") or context.getConf().get("spark.pyspark.python")
    if str(context.master).startswith("local") and not named:
        context.pythonExec = sys.executable
    session.dataSource.register(KafkaDataSource)
    shell = _notebook()
    if shell is not None:
        shell.set_custom_exc((Exception,), _shown_in_notebook)
    elif not isinstance(sys.excepthook, OneSentence):
        sys.excepthook = OneSentence(sys.excepthook)


class OneSentence:
    """An exception hook that says what a reader or writer raised, and leaves anything else to the hook before it."""

    def __init__(self, before: Hook) -> None:
        self._before = before

    def __call__(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """Called with an error that nobody caught."""
        if not _said(error):
            self._before(kind, error, trace)


def _shown_in_notebook(
    shell: Any,  # noqa: ANN401  IPython is not among our packages
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    if not _said(error):
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _said(error: BaseException) -> bool:
    ours = said_by_a_task(str(error))
    if ours is not None:
        sys.stderr.write(f"{ours.code}: {ours.paragraph()}\n")
    return ours is not None


def _notebook() -> Any:  # noqa: ANN401
    """The shell that runs this code where it is IPython's."""
    library = sys.modules.get("IPython")
    return None if library is None else library.get_ipython()
