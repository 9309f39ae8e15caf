"""TCP connections to names that a topology file or a broker gave."""

import socket


def open_tcp(address: tuple[str, int], seconds: float) -> socket.socket:
    """Connects within so many seconds.

    Raises:
        OSError: not; also where the name is none (Python calls a part between dots that is empty or longer than 63
            characters an error of its encoding).
    """
    try:
        return socket.create_connection(address, timeout=seconds)
    except UnicodeError as error:
        raise OSError(f"'{address[0]}' is no host name") from error
