"""The HTTP face of a worker: probes, metrics, the read API, two changes, and the console.

Importing this module imports FastAPI, which is slow: ``server`` does it when it starts, after the
lanes have. Who gets in is decided by ``admission``; what is answered comes from the provider.
"""

from importlib import resources
from pathlib import PurePath
from typing import Annotated, Any

import orjson
from fastapi import Body, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from replicator import __version__
from replicator.api.access.admission import AccessPolicy, Token
from replicator.api.access.guard import Guard, shown_path
from replicator.api.routes.provider import JsonObject, StatusProvider
from replicator.api.routes.schemas import ErrorAnswer, HealthAnswer, PauseRequest, ResumeRequest
from replicator.errors import InputError, NotFoundError, RefusedError, ReplicatorError
from replicator.observability.health import HealthVerdict
from replicator.observability.logging import get_logger
from replicator.redaction import redact_answer, redact_fields, redact_known

_LOG = get_logger("api")
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_ELSEWHERE: dict[int | str, dict[str, Any]] = {
    421: {
        "model": ErrorAnswer,
        "description": "It answers on loopback only, and was asked for another host.",
    }
}
_ERRORS: dict[int | str, dict[str, Any]] = {
    **_ELSEWHERE,
    401: {"model": ErrorAnswer, "description": "A token is needed."},
    403: {"model": ErrorAnswer, "description": "The token is wrong, or changes are off."},
    500: {"model": ErrorAnswer, "description": "The worker failed."},
    503: {"model": ErrorAnswer, "description": "A cluster does not answer; try again."},
}
_CHANGE_ERRORS: dict[int | str, dict[str, Any]] = {
    **_ERRORS,
    400: {"model": ErrorAnswer, "description": "The body is not text in UTF-8."},
    404: {"model": ErrorAnswer, "description": "No such flow, topic or partition."},
    409: {"model": ErrorAnswer, "description": "Refused by a safety check."},
    411: {"model": ErrorAnswer, "description": "The length of the body is not stated."},
    413: {"model": ErrorAnswer, "description": "The body is too large."},
    415: {"model": ErrorAnswer, "description": "The body is not JSON."},
    422: {"model": ErrorAnswer, "description": "The body is wrong."},
}


class JsonAnswer(JSONResponse):
    """JSON by orjson; the server's only kind of data."""

    def render(self, content: object) -> bytes:
        """The body, without the secrets that this process has read."""
        body = orjson.dumps(content, default=str)
        text = body.decode()
        # Seldom anything is found, so the whole is looked through at once.
        if redact_known(text) == text:
            return body
        return orjson.dumps(redact_answer(orjson.loads(body)))


def create_app(
    provider: StatusProvider,
    *,
    token: Token | None,
    read_token_required: bool,
    loopback_only: bool = False,
) -> FastAPI:
    """Builds the app.

    Args:
        provider: the worker behind it.
        token: the bearer token, or what gives the present one; None switches every change off.
        read_token_required: reading needs the token as well (probes and static files never do).
        loopback_only: the server is bound to loopback: other host names are refused.
    """
    app = FastAPI(
        title="replicator",
        version=__version__,
        description="State of one replicator worker. Everything that changes state is POST and "
        "needs the bearer token given by --http-token-file.",
        docs_url=None,  # those pages load scripts from elsewhere
        redoc_url=None,
        default_response_class=JsonAnswer,
        redirect_slashes=False,
    )
    policy = AccessPolicy(None, read_token_required, loopback_only)
    app.add_middleware(Guard, policy=policy, token=token)
    _add_probes(app, provider)
    _add_reads(app, provider)
    _add_changes(app, provider)
    _add_console(app)
    _add_errors(app)
    _describe_security(app)
    return app


def _add_probes(app: FastAPI, provider: StatusProvider) -> None:
    not_ok: dict[int | str, dict[str, Any]] = {
        **_ELSEWHERE,
        503: {"model": HealthAnswer, "description": "No; the reasons say why."},
    }

    @app.get("/livez", tags=["probes"], response_model=HealthAnswer, responses=not_ok)
    async def livez() -> Response:
        """Whether this worker's own loops ran recently."""
        return _health(provider.live())

    @app.get("/readyz", tags=["probes"], response_model=HealthAnswer, responses=not_ok)
    async def readyz() -> Response:
        """Whether clusters are reachable and assigned lanes run."""
        return _health(provider.ready())


def _add_reads(app: FastAPI, provider: StatusProvider) -> None:
    @app.get(
        "/metrics",
        tags=["metrics"],
        response_class=Response,
        responses={**_ERRORS, 200: {"content": {"text/plain": {}}}},
    )
    async def metrics() -> Response:
        """Metrics of this worker in the Prometheus text format."""
        from replicator.observability.metrics import CONTENT_TYPE

        return Response(await provider.metrics(), media_type=CONTENT_TYPE)

    @app.get("/api/v1/status", tags=["state"], response_model=dict[str, Any], responses=_ERRORS)
    async def status() -> Response:
        """The object of `replicator status -o json`."""
        return JsonAnswer(await provider.status())

    @app.get("/api/v1/topology", tags=["state"], response_model=dict[str, Any], responses=_ERRORS)
    async def topology() -> Response:
        """Clusters, links and policies as this worker runs them; never a secret."""
        # The provider leaves secrets out already; this would catch a field that it forgot.
        return JsonAnswer(redact_fields(await provider.topology()))

    @app.get("/api/v1/history", tags=["state"], response_model=dict[str, Any], responses=_ERRORS)
    async def history() -> Response:
        """The object of `replicator history -o json`."""
        return JsonAnswer(await provider.history())

    @app.get("/api/v1/groups", tags=["state"], response_model=dict[str, Any], responses=_ERRORS)
    async def groups() -> Response:
        """The object of `replicator groups -o json`, a few seconds old at most."""
        return JsonAnswer(await provider.groups())


def _add_changes(app: FastAPI, provider: StatusProvider) -> None:
    @app.post(
        "/api/v1/pause", tags=["changes"], response_model=dict[str, Any], responses=_CHANGE_ERRORS
    )
    async def pause(wanted: Annotated[PauseRequest, Body()]) -> Response:
        """Pauses a flow, a topic or a partition, durably."""
        answer = await provider.pause(wanted.target())
        _LOG.info("paused over HTTP", **wanted.model_dump(exclude_none=True))
        return JsonAnswer(answer)

    @app.post(
        "/api/v1/resume", tags=["changes"], response_model=dict[str, Any], responses=_CHANGE_ERRORS
    )
    async def resume(wanted: Annotated[ResumeRequest, Body()]) -> Response:
        """Resumes what was paused, or goes on past a gap that is accepted."""
        answer = await provider.resume(wanted.target(), accept_gap=wanted.accept_gap)
        _LOG.info("resumed over HTTP", **wanted.model_dump(exclude_none=True))
        return JsonAnswer(answer)


def _add_console(app: FastAPI) -> None:
    # The files are listed once: no path of a request ever reaches the file system.
    pages = {
        "/" if entry.name == "index.html" else f"/console/{entry.name}": entry
        for entry in resources.files("replicator.api").joinpath("console").iterdir()
        if PurePath(entry.name).suffix in _MEDIA_TYPES
    }
    answers = {
        path: (entry.read_bytes(), _MEDIA_TYPES[PurePath(entry.name).suffix])
        for path, entry in pages.items()
    }

    async def page(request: Request) -> Response:
        content, media_type = answers[request.url.path]
        return Response(content, media_type=media_type)

    for path in answers:
        app.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(ReplicatorError)
    async def _(_request: Request, error: ReplicatorError) -> Response:
        return _error(_status_of(error), error.code, error.subject, error.message, error.remedy)

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, error: RequestValidationError) -> Response:
        details = "; ".join(
            f"{'.'.join(str(part) for part in each['loc'][1:]) or 'body'}: {each['msg']}"
            for each in error.errors()
        )
        return _error(
            422,
            "INPUT",
            shown_path(request.scope["path"]),
            details,
            "See /openapi.json for what it takes.",
        )

    @app.exception_handler(HTTPException)
    async def _(request: Request, error: HTTPException) -> Response:
        answer = _error(
            error.status_code,
            "NOT_FOUND" if error.status_code == 404 else "REQUEST",
            shown_path(request.scope["path"]),
            str(error.detail),
            "See /openapi.json for what there is.",
        )
        answer.headers.update(error.headers or {})
        return answer


def _describe_security(app: FastAPI) -> None:
    built = app.openapi

    def openapi() -> dict[str, Any]:
        document = built()
        schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
        schemes["token"] = {"type": "http", "scheme": "bearer"}
        for operations in document["paths"].values():
            if "post" in operations:
                operations["post"]["security"] = [{"token": []}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # the documented way to extend it


def _health(verdict: HealthVerdict) -> Response:
    answer: dict[str, object] = {"ok": verdict.ok, "reasons": list(verdict.reasons)}
    if verdict.details:
        answer["details"] = list(verdict.details)
    return JsonAnswer(answer, status_code=200 if verdict.ok else 503)


def _status_of(error: ReplicatorError) -> int:
    if isinstance(error, NotFoundError):
        return 404
    if isinstance(error, InputError):
        return 422
    if isinstance(error, RefusedError):
        return 409
    return 503 if error.retriable else 500


def _error(status: int, code: str, subject: str, detail: str, remedy: str) -> JsonAnswer:
    body: JsonObject = redact_fields({"subject": subject, "detail": detail, "remedy": remedy})
    return JsonAnswer({"error": {"code": code, **body}}, status_code=status)
