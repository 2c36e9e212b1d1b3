"""The health check of a container: ends with 0 if its node answers /healthz with 200, else with 1.

DOMKL_HEALTH is the address to ask, if it is not that of `domkl mesh init --http-host 0.0.0.0`; the
certificate is checked with ca.pem in the node's folder, DOMKL_FOLDER.
"""

import os
import ssl
import sys
from pathlib import Path
from urllib.request import HTTPSHandler, OpenerDirector, ProxyHandler, build_opener

URL, FOLDER = "https://127.0.0.1:22000/healthz", "/var/lib/domkl/node"
SECONDS = 3.0


def is_healthy(url: str, folder: Path) -> bool:
    """Whether the node answers that it learns and predicts."""
    try:
        with _opener(url, folder).open(url, timeout=SECONDS) as answer:
            return int(answer.status) == 200
    except OSError as error:  # also an answer such as 503
        print(f"{url}: {error}", file=sys.stderr)
        return False


def _opener(url: str, folder: Path) -> OpenerDirector:
    no_proxy = ProxyHandler({})
    if not url.startswith("https:"):
        return build_opener(no_proxy)
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.check_hostname = False  # the certificate names the learner, which is asked on loopback
    return build_opener(no_proxy, HTTPSHandler(context=context))


if __name__ == "__main__":
    found = is_healthy(
        os.environ.get("DOMKL_HEALTH", URL), Path(os.environ.get("DOMKL_FOLDER", FOLDER))
    )
    sys.exit(0 if found else 1)
