"""An object store of the S3 kind, as far as archives need it: objects in memory over HTTP."""

import contextlib
import threading
from collections.abc import Iterator, MutableMapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_TIME = "2026-01-31T12:00:00.000Z"


class _Handler(BaseHTTPRequestHandler):
    objects: MutableMapping[str, bytes]
    lock: threading.Lock
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._answer(with_body=False)

    def do_GET(self):
        self._answer(with_body=True)

    def do_PUT(self):
        path = unquote(urlsplit(self.path).path).strip("/")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.lock:
            taken = self.headers.get("If-None-Match") == "*" and path in self.objects
            if not taken:
                self.objects[path] = body
        self._send(412 if taken else 200, b"", with_body=True)

    def do_DELETE(self):
        with self.lock:
            self.objects.pop(unquote(urlsplit(self.path).path).strip("/"), None)
        self._send(204, b"", with_body=False)

    def _answer(self, *, with_body):
        url = urlsplit(self.path)
        path = unquote(url.path).strip("/")
        query = parse_qs(url.query, keep_blank_values=True)
        if "list-type" in query:
            self._send(200, _listing(self.objects, path, query), with_body)
        elif path in self.objects:
            whole = self.objects[path]
            wanted = self.headers.get("Range", "")
            if wanted.startswith("bytes="):
                first, _, last = wanted[6:].partition("-")
                part = whole[int(first) : int(last) + 1 if last else None]
                self._send(206, part, with_body)
            else:
                self._send(200, whole, with_body)
        elif "/" not in path and any(key.startswith(f"{path}/") for key in self.objects):
            self._send(200, b"", with_body)
        else:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", with_body)

    def _send(self, status, body, with_body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Sat, 31 Jan 2026 12:00:00 GMT")
        self.send_header("ETag", '"0"')
        self.end_headers()
        if with_body:
            self.wfile.write(body)


@contextlib.contextmanager
def played_s3(objects: MutableMapping[str, bytes]) -> Iterator[str]:
    """Serves ``bucket/key`` to content; yields ``host:port``. Requests with any key are allowed."""

    handler = type("Handler", (_Handler,), {"objects": objects, "lock": threading.Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _listing(objects, bucket, query):
    prefix = query.get("prefix", [""])[0]
    delimiter = query.get("delimiter", [""])[0]
    after = query.get("start-after", [""])[0]
    rows, folders = [], set()
    for name, content in sorted(objects.items()):
        key = name.removeprefix(f"{bucket}/")
        if key == name or not key.startswith(prefix) or key <= after:
            continue
        inner, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
        if cut:
            folders.add(prefix + inner + cut)
        else:
            rows.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size>"
                f"<LastModified>{_TIME}</LastModified><ETag>0</ETag></Contents>"
            )
    rows += [
        f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders
    ]
    return (
        f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
        f"<KeyCount>{len(rows)}</KeyCount><IsTruncated>false</IsTruncated>{''.join(rows)}"
        "</ListBucketResult>"
    ).encode()
