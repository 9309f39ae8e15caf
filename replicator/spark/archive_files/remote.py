"""An archive in an object store of the S3 kind, read without Spark: whether it is there is known in a second.

The keys and the endpoint are those that Spark's own client (s3a) is given. What cannot be asked this way,
for whatever reason, is left to Spark, which then says what is wrong.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from replicator.spark.base.file_info import FileInfo

SCHEMES = ("s3a", "s3")
_PREFIX = "spark.hadoop.fs.s3a."
_CONNECT_SECONDS = 1.0
_ANSWER_SECONDS = 2.0
_ANONYMOUS = "AnonymousAWSCredentialsProvider"


class RemoteFolder:
    """A folder of an object store, as ``store`` reads one."""

    def __init__(self, url: str, conf: Mapping[str, str]) -> None:
        """``conf`` are the settings of the session; nothing is asked yet."""
        parts = urlsplit(url)
        self._fs = _file_system(conf, parts.netloc)
        self._scheme = f"{parts.scheme}://"
        self.root = url.rstrip("/")

    def path(self, *parts: str) -> str:
        """A whole path below the folder."""
        return "/".join((self.root, *parts))

    def list(self, path: str) -> list[FileInfo]:
        """The files directly in a folder, in order of path; none where it does not exist.

        Raises:
            OSError: the store does not answer, or refuses.
        """
        from pyarrow import fs

        selector = fs.FileSelector(self._inner(path), allow_not_found=True)
        return sorted(
            (
                FileInfo(self._scheme + each.path, each.size)
                for each in self._fs.get_file_info(selector)
                if each.type == fs.FileType.File
            ),
            key=lambda each: each.path,
        )

    def read_text(self, path: str) -> str | None:
        """A whole small file; None when it is gone.

        Raises:
            OSError: the store does not answer, or refuses.
        """
        try:
            with self._fs.open_input_stream(self._inner(path)) as stream:
                return str(stream.read().decode())
        except FileNotFoundError:
            return None

    def _inner(self, path: str) -> str:
        return path.removeprefix(self._scheme)


def s3_setting(conf: Mapping[str, str], bucket: str) -> Callable[[str], str | None]:
    """Looks up settings of s3a: those of the bucket win over those of all."""

    def setting(name: str) -> str | None:
        return conf.get(f"{_PREFIX}bucket.{bucket}.{name}") or conf.get(_PREFIX + name)

    return setting


def _file_system(conf: Mapping[str, str], bucket: str) -> Any:  # noqa: ANN401  pyarrow has no types
    from pyarrow import fs

    setting = s3_setting(conf, bucket)
    endpoint = setting("endpoint")
    secure = setting("connection.ssl.enabled") != "false"
    if endpoint and "://" in endpoint:
        scheme, _, endpoint = endpoint.partition("://")
        secure = scheme == "https"
    given: dict[str, Any] = {
        "access_key": setting("access.key"),
        "secret_key": setting("secret.key"),
        "session_token": setting("session.token"),
        "endpoint_override": endpoint,
        "region": setting("endpoint.region"),
    }
    return fs.S3FileSystem(
        anonymous=_ANONYMOUS in (setting("aws.credentials.provider") or ""),
        scheme="https" if secure else "http",
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_ANSWER_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),
        **{name: value for name, value in given.items() if value},
    )
