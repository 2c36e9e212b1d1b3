"""The files of the page, and the headers that keep it to itself.

The page is the same for a node and for `domkl mesh ui`. It holds no data: its scripts ask for them,
with the token where one is demanded. The policy forbids whatever the page does not need: scripts,
styles and requests are of this origin only, and no text can become markup.
"""

from collections.abc import Iterator
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
NAMES = (
    "index.html", "style.css", "icon.svg", "app.js", "chart.js", "format.js", "network.js",
    "panels.js", "series.js", "stream.js", "tables.js",
)  # fmt: skip
#: what the page consists of, by address
PATHS = ("/", *(f"/ui/{name}" for name in NAMES if name != "index.html"))
POLICY = "; ".join(
    [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'",
        "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
        "require-trusted-types-for 'script'", "trusted-types 'none'",
    ]
)  # fmt: skip
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def page_routes() -> Iterator[Route]:
    """The requests for the page and its files."""
    for path in PATHS:
        yield _route(path, "index.html" if path == "/" else path.removeprefix("/ui/"))


def _route(path: str, name: str) -> Route:
    content = files("domkl.mesh.operate").joinpath("static", name).read_bytes()
    kind = TYPES[name.rpartition(".")[2]]

    async def file(request: Request) -> Response:
        """A file of the page."""
        return Response(content, media_type=kind, headers=HEADERS)

    return Route(path, file)
