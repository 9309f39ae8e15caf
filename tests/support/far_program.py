"""Runs at the far end of a long line: answers one byte at once, swallows or sends as many as asked for.

``python far_program.py HOST`` prints its port. A connection begins with ``e`` (echo), ``s`` (swallow until the end,
then say how much) or ``g`` (give until the other side hangs up).
"""

import socket
import sys
import threading


def serve(connection):
    with connection:
        kind = connection.recv(1)
        if kind == b"e":
            while data := connection.recv(1):
                connection.sendall(data)
        elif kind == b"s":
            size = 0
            while data := connection.recv(1 << 18):
                size += len(data)
            connection.sendall(size.to_bytes(8, "big"))
        else:
            try:
                while True:
                    connection.sendall(bytes(1 << 16))
            except OSError:
                return


def main():
    listener = socket.create_server((sys.argv[1], 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
