"""Lookups over HTTP: the routes, the limits, and which error is which status."""

import functools
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recsys.foundations import (
    ArgumentError,
    DataError,
    MissingExtraError,
    ShapeError,
    UnknownIdError,
    available_cores,
)
from recsys.index import check_alpha
from recsys.serving.answers import Answers
from recsys.serving.lookup import Lookup
from recsys.serving.user_lookup import UserRequest
from recsys.serving.wire import (
    ExplainRequest,
    NeighboursRequest,
    RecommendRequest,
    check_limits,
    check_most,
    check_users,
    display_columns,
    explanation_replies,
    item_replies,
    parse,
    to_table,
)

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response

log = logging.getLogger(__name__)

Answer = Callable[[Lookup, bytes], dict[str, Any]]

_STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (UnknownIdError, 404),
    (ArgumentError, 422),
    (DataError, 422),
    (ShapeError, 422),
)
_GRACE_SECONDS = 10


class _TooLargeError(Exception):
    """The body is larger than the limit."""


def create_app(
    lookup: Lookup | None,
    *,
    max_k: int,
    max_batch: int,
    max_body_bytes: int,
    popularity_alpha: float,
) -> "FastAPI":
    """Make the application; a request can name no file and change nothing.

    Bad requests get 422, unknown items 404, bodies above the limit 413; without a lookup all get
    503; whatever else goes wrong 500 without detail. Every error is ``{"error": sentence}``.

    Args:
        lookup: Answers; None while there is none yet.
        max_k: The largest k that is answered.
        max_batch: The most users or items of one request.
        max_body_bytes: The longest body that is read.
        popularity_alpha: The popularity dial of requests that name none; as in `UserRequest`.

    Raises:
        MissingExtraError: FastAPI is not installed.
        ArgumentError: ``popularity_alpha`` is out of range.
    """
    check_alpha("popularity_alpha", popularity_alpha)
    try:
        from fastapi import FastAPI
    except ImportError as error:
        raise _missing(error) from error

    app = FastAPI(title="recsys", docs_url=None, redoc_url=None)
    app.add_api_route("/healthz", _health(lookup), methods=["GET"], summary="Whether it answers")
    for path, kind, answer in (
        (
            "/v1/recommend",
            RecommendRequest,
            functools.partial(
                _recommend, max_k=max_k, max_batch=max_batch, popularity_alpha=popularity_alpha
            ),
        ),
        (
            "/v1/explain",
            ExplainRequest,
            functools.partial(_explain, max_k=max_k, max_batch=max_batch),
        ),
        (
            "/v1/neighbours",
            NeighboursRequest,
            functools.partial(_neighbours, max_k=max_k, max_batch=max_batch),
        ),
    ):
        schema = {"application/json": {"schema": kind.model_json_schema()}}
        app.add_api_route(
            path,
            _route(lookup, answer, max_body_bytes),
            methods=["POST"],
            summary=kind.__doc__,
            openapi_extra={"requestBody": {"required": True, "content": schema}},
        )
    app.add_exception_handler(404, _no_route)
    app.add_exception_handler(405, _no_route)
    return app


def serve_app(app: "FastAPI", *, host: str, port: int) -> None:
    """Serve until the process is stopped; requests under way are answered first.

    Args:
        app: As `create_app` made it.
        host: The address to listen on; 127.0.0.1 is reachable from this machine alone.
        port: 0 lets the system choose; the log tells.

    Raises:
        MissingExtraError: uvicorn is not installed.
        ArgumentError: The address is not free, or not this machine's.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise _missing(error) from error

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ArgumentError(f"`host` and `port`: {host}:{port} cannot be used: {error}.") from error
    with listener:
        log.info("listening on http://%s:%d", host, listener.getsockname()[1])
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        uvicorn.Server(config).run(sockets=[listener])


def _missing(error: ImportError) -> MissingExtraError:
    return MissingExtraError(
        f"Serving needs {error.name or 'FastAPI'}: pip install 'recsys-retrieval[serve]'."
    )


def _health(lookup: Lookup | None) -> Any:
    async def health() -> Any:
        if lookup is None:
            return _reply(503, {"error": "No bundle is loaded."})
        bundle = lookup.bundle
        num_items = bundle.num_items - len(bundle.withdrawn)
        counts = {"num_users": bundle.num_users, "num_items": num_items}
        return _reply(200, {"status": "ok", "bundle_id": bundle.bundle_id, **counts})

    return health


def _route(lookup: Lookup | None, answer: Answer, max_body_bytes: int) -> Any:
    """Make a route: read a bounded body, answer it in a thread, turn errors into statuses."""
    from anyio import CapacityLimiter, to_thread
    from fastapi import Request

    limiter: list[CapacityLimiter] = []  # made inside the event loop that it belongs to

    async def route(request: Request) -> Any:
        if lookup is None:
            return _reply(503, {"error": "No bundle is loaded."})
        if not limiter:
            limiter.append(CapacityLimiter(available_cores()))
        try:
            body = await _body(request, max_body_bytes)
            content = await to_thread.run_sync(answer, lookup, body, limiter=limiter[0])
        except _TooLargeError:
            return _reply(413, {"error": f"A request must be below {max_body_bytes} bytes."})
        except Exception as error:  # noqa: BLE001  (the table says what each one is)
            return _failure(error)
        return _reply(200, content)

    return route


async def _body(request: "Request", limit: int) -> bytes:
    """Read the body and stop at the limit, whatever the header says of its length."""
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated[:20]) > limit:
        raise _TooLargeError
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise _TooLargeError
    return bytes(body)


def _failure(error: Exception) -> "Response":
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return _reply(status, {"error": str(error)})
    log.error("A request could not be answered.", exc_info=error)
    return _reply(500, {"error": "The request could not be answered."})


async def _no_route(request: "Request", error: Exception) -> "Response":
    status = int(getattr(error, "status_code", 404))
    return _reply(status, {"error": f"There is no {request.method} {request.url.path}."})


def _reply(status: int, content: dict[str, Any]) -> "Response":
    import orjson
    from fastapi import Response

    return Response(orjson.dumps(content), status, media_type="application/json")


def _recommend(
    lookup: Lookup, body: bytes, *, max_k: int, max_batch: int, popularity_alpha: float
) -> dict[str, Any]:
    request: RecommendRequest = parse(RecommendRequest, body)
    check_limits(request, request.users, max_k=max_k, max_batch=max_batch)
    check_users(request)
    wanted = UserRequest(
        k=request.k,
        exact=request.exact,
        exclude_seen=request.exclude_seen,
        popularity_alpha=popularity_alpha
        if request.popularity_alpha is None
        else request.popularity_alpha,
        histories=request.histories,
        features=to_table(request.features, "features"),
        context=to_table(request.context, "context"),
        exclude=request.exclude,
        allowed=request.allowed,
        where=request.where,
    )
    found = _lists(lookup, list(lookup.recommend_blocks(request.users, wanted)))
    results = [
        {"user_id": user, "fallback": found[user][0], "items": found[user][1]}
        for user in request.users
    ]
    return {"bundle_id": lookup.bundle.bundle_id, "results": results}


def _neighbours(lookup: Lookup, body: bytes, *, max_k: int, max_batch: int) -> dict[str, Any]:
    request: NeighboursRequest = parse(NeighboursRequest, body)
    check_limits(request, request.items, max_k=max_k, max_batch=max_batch)
    blocks = lookup.neighbour_blocks(
        request.items,
        k=request.k,
        exact=request.exact,
        exclude=request.exclude,
        allowed=request.allowed,
        where=request.where,
    )
    found = _lists(lookup, list(blocks))
    results = [{"item_id": item, "items": found[item][1]} for item in request.items]
    return {"bundle_id": lookup.bundle.bundle_id, "results": results}


def _explain(lookup: Lookup, body: bytes, *, max_k: int, max_batch: int) -> dict[str, Any]:
    request: ExplainRequest = parse(ExplainRequest, body)
    check_limits(request, request.items or (), max_k=max_k, max_batch=max_batch)
    check_most("num_history", request.num_history, max_k)
    given = {name: getattr(request, name) for name in ("history", "features", "context")}
    by_user = {name: None if one is None else {request.user: one} for name, one in given.items()}
    found = lookup.explain(
        request.user,
        request.items,
        k=request.k,
        num_history=request.num_history,
        where=request.where,
        histories=by_user["history"],
        features=to_table(by_user["features"], "features"),
        context=to_table(by_user["context"], "context"),
    )
    ids = pa.chunked_array([found.items["item_id"], found.history["history_item_id"]], pa.string())
    shown = display_columns(lookup.describe_items(ids.unique()))
    results = explanation_replies(found, shown)
    return {"bundle_id": lookup.bundle.bundle_id, "user_id": request.user, "items": results}


def _lists(lookup: Lookup, blocks: list[Answers]) -> dict[str, tuple[bool, list[dict[str, Any]]]]:
    """Give by query whether its list is the fallback, and its items."""
    ids = pa.concat_arrays([block.item_ids for block in blocks])
    shown = display_columns(lookup.describe_items(ids.unique()))
    found = {}
    for block in blocks:
        items, scores = block.item_ids.to_pylist(), block.hits.scores.tolist()
        bounds = block.hits.offsets.tolist()
        for number, query in enumerate(block.query_ids.to_pylist()):
            here = slice(bounds[number], bounds[number + 1])
            replies = item_replies(items[here], scores[here], shown)
            found[query] = (bool(block.fallback[number]), replies)
    return found
