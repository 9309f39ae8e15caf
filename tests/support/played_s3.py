"""An object store of the S3 kind, as far as archives need it: objects in memory over HTTP.

As much of it as Spark's own client (s3a), the Delta library and pyarrow ask for: objects, copies, uploads in
parts, deletions of many, and bodies that the client sends in signed pieces (aws-chunked).
"""

import contextlib
import hashlib
import re
import threading
from collections.abc import Iterator, MutableMapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

_TIME = "2026-01-31T12:00:00.000Z"
_NO_KEY = b"<Error><Code>NoSuchKey</Code></Error>"
_PARTS = ".parts/"
"""Before the names of parts that are not put together yet; no bucket is called so."""


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
        url = urlsplit(self.path)
        path, query = _named(url.path), parse_qs(url.query)
        body = self._body()
        origin = self.headers.get("x-amz-copy-source")
        with self.lock:
            if origin is not None:
                body = self.objects.get(_named(origin))
                if body is None:
                    self._send(404, _NO_KEY, with_body=True)
                    return
            if "uploadId" in query:
                path = f"{_PARTS}{query['uploadId'][0]}/{int(query['partNumber'][0]):05d}"
            taken = self.headers.get("If-None-Match") == "*" and path in self.objects
            if not taken:
                self.objects[path] = body
        copied = f"<CopyObjectResult><ETag>{_tag(body)}</ETag><LastModified>{_TIME}</LastModified></CopyObjectResult>"
        answer = copied.encode() if origin is not None else b""
        self._send(412 if taken else 200, b"" if taken else answer, with_body=True, tag=_tag(body))

    def do_POST(self):
        url = urlsplit(self.path)
        path, query = _named(url.path), parse_qs(url.query, keep_blank_values=True)
        body = self._body().decode()
        bucket, _, key = path.partition("/")
        if "delete" in query:
            with self.lock:
                for each in re.findall(r"<Key>([^<]*)</Key>", body):
                    self.objects.pop(f"{bucket}/{unescape(each)}", None)
            self._send(200, b"<DeleteResult></DeleteResult>", with_body=True)
        elif "uploads" in query:
            number = hashlib.sha256(path.encode()).hexdigest()[:16]
            answer = (
                f"<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
                f"<UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
            )
            self._send(200, answer.encode(), with_body=True)
        else:
            prefix = f"{_PARTS}{query['uploadId'][0]}/"
            with self.lock:
                names = sorted(name for name in self.objects if name.startswith(prefix))
                whole = b"".join(self.objects.pop(name) for name in names)
                self.objects[path] = whole
            answer = (
                f"<CompleteMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
                f"<ETag>{_tag(whole)}</ETag></CompleteMultipartUploadResult>"
            )
            self._send(200, answer.encode(), with_body=True)

    def _body(self):
        """What was sent, without the frames of pieces that are signed one by one."""
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return sent
        pieces, at = [], 0
        while True:
            line, _, _ = sent[at:].partition(b"\r\n")
            size = int(line.partition(b";")[0], 16)
            if not size:
                return b"".join(pieces)
            begin = at + len(line) + 2
            pieces.append(sent[begin : begin + size])
            at = begin + size + 2

    def do_DELETE(self):
        with self.lock:
            self.objects.pop(_named(urlsplit(self.path).path), None)
        self._send(204, b"", with_body=False)

    def _answer(self, *, with_body):
        url = urlsplit(self.path)
        path = _named(url.path)
        query = parse_qs(url.query, keep_blank_values=True)
        if "list-type" in query:
            self._send(200, _listing(self.objects, path.rstrip("/"), query), with_body)
        elif path in self.objects:
            whole = self.objects[path]
            first, last = _range(self.headers.get("Range", ""), len(whole))
            if first >= len(whole) > 0:
                self._send(416, b"<Error><Code>InvalidRange</Code></Error>", with_body)
            elif "Range" in self.headers:
                place = f"bytes {first}-{last}/{len(whole)}"
                self._send(206, whole[first : last + 1], with_body, tag=_tag(whole), place=place)
            else:
                self._send(200, whole, with_body, tag=_tag(whole))
        elif "/" not in path and any(key.startswith(f"{path}/") for key in self.objects):
            self._send(200, b"", with_body)
        else:
            self._send(404, _NO_KEY, with_body)

    def _send(self, status, body, with_body, *, tag='"0"', place=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Sat, 31 Jan 2026 12:00:00 GMT")
        self.send_header("ETag", tag)
        if place is not None:
            self.send_header("Content-Range", place)
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
                f"<LastModified>{_TIME}</LastModified><ETag>{escape(_tag(content))}</ETag></Contents>"
            )
    rows += [
        f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders
    ]
    return (
        f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
        f"<KeyCount>{len(rows)}</KeyCount><IsTruncated>false</IsTruncated>{''.join(rows)}"
        "</ListBucketResult>"
    ).encode()


def _tag(content):
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _range(wanted, size):
    """The first and the last byte that are asked for."""
    if not wanted.startswith("bytes="):
        return 0, size - 1
    first, _, last = wanted[6:].partition("-")
    if not first:
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1) if last else size - 1


def _named(path):
    """Bucket and key; a key that ends in a slash stands for a folder, and is another one without it."""
    return unquote(path).removeprefix("/")
