"""The bearer token of ``--http-token-file``: read where it is needed, never empty."""

from pathlib import Path

from replicator.errors import InputError
from replicator.observability.logging import get_logger
from replicator.redaction import register_secret

MOST_BYTES = 4096
_LOG = get_logger("api")


class TokenFile:
    """A file whose token may be exchanged while the worker runs.

    While the file is missing or empty, no token is right: a door that was locked stays locked.
    """

    def __init__(self, path: Path) -> None:
        """Reads it once.

        Raises:
            InputError: there is no token in it.
        """
        self._path = path
        self._problem = ""
        read_token(path)

    def current(self) -> str:
        """The token as the file has it now; empty, which no caller can match, without one."""
        try:
            token = read_token(self._path)
        except InputError as error:
            if error.message != self._problem:
                self._problem = error.message
                _LOG.error("every token is refused", problem=error.message, remedy=error.remedy)
            return ""
        self._problem = ""
        return token

    def problem(self) -> str:
        """Why no token is right now; empty when one is."""
        self.current()
        return self._problem


def read_token(path: Path) -> str:
    """The token in a file, without the blanks and line ends around it; registered for redaction.

    Raises:
        InputError: it cannot be read, is empty, or could not stand in an HTTP header.
    """
    remedy = (
        "Put one line of printable ASCII there, for example the output of 'openssl rand -hex 32'."
    )
    if path.exists() and not path.is_file():
        raise _wrong(path, "is not a regular file", remedy)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise _wrong(path, "does not exist", remedy) from None
    except OSError as error:
        wrong = f"cannot be read ({error.strerror or error})"
        raise _wrong(path, wrong, "Check its rights.") from error
    token = content.strip()
    if not token:
        raise _wrong(path, "is empty", remedy)
    if len(content) > MOST_BYTES or not (token.isascii() and token.decode("ascii").isprintable()):
        raise _wrong(path, f"is not one line of at most {MOST_BYTES} printable characters", remedy)
    register_secret(token.decode("ascii"))
    return token.decode("ascii")


def _wrong(path: Path, wrong: str, remedy: str) -> InputError:
    return InputError(f"the token file {wrong}", subject=f"--http-token-file {path}", remedy=remedy)
