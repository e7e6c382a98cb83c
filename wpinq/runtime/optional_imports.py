"""How to install an extra of wpinq: from where wpinq itself came."""

from __future__ import annotations

import json
import shlex
from urllib.parse import urlparse
from urllib.request import url2pathname


def install(extra: str) -> str:
    """The command that installs an extra, from the origin of wpinq's own installation.

    The origin is a checkout or a repository, if any.

    Examples
    --------
    >>> install("tables").startswith("pip install ")
    True
    """
    return command(extra, _origin())


def command(extra: str, origin: object) -> str:
    """The same, from the content of `direct_url.json` (PEP 610).

    It is None where wpinq came from a package index.

    Examples
    --------
    >>> command("tables", None)
    "pip install 'wpinq[tables]'"
    >>> command("tables", {"url": "file:///src/wpinq", "dir_info": {"editable": True}})
    "pip install --editable '/src/wpinq[tables]'"
    >>> command("plots", {"url": "https://example.org/wpinq.git", "vcs_info": {"vcs": "git"}})
    "pip install 'wpinq[plots] @ git+https://example.org/wpinq.git'"
    """
    match origin:
        case {"url": str(url), "dir_info": {**how}}:
            editable = "--editable " if how.get("editable") is True else ""
            return f"pip install {editable}{shlex.quote(f'{url2pathname(urlparse(url).path)}[{extra}]')}"
        case {"url": str(url), "vcs_info": {"vcs": str(kind)}}:
            return f"pip install {shlex.quote(f'wpinq[{extra}] @ {kind}+{url}')}"
    return f"pip install 'wpinq[{extra}]'"


def _origin() -> object:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return json.loads(distribution("wpinq").read_text("direct_url.json") or "null")
    except (PackageNotFoundError, OSError, ValueError):
        return None
