"""TLS: the certificate that a service shows, and the key that nobody else may read."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import NoReturn

from wpinq.commands.exits import UsageError
from wpinq.service.configuration import Configuration


def server_context(configuration: Configuration) -> ssl.SSLContext | None:
    """What encrypts connections; None where nothing does.

    Raises
    ------
    UsageError
        When the files are none that TLS can use, the key asks for a passphrase, or others can read it.
    """
    certificate, key = configuration.certificate, configuration.key
    if certificate is None or key is None:
        return None
    _check_private(key)

    def ask() -> NoReturn:
        raise UsageError(f"{key} asks for a passphrase, and nobody is there to type it: give a key without one, 0600")

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password=ask)
    except (OSError, ssl.SSLError):
        raise UsageError(f"{certificate} and {key} are no certificate and its key, in PEM") from None
    return context


def _check_private(key: Path) -> None:
    """Refuse a key that others can read; a group may where the key is another's, as a system's keys are root's."""
    try:
        status = key.stat()
    except OSError:
        raise UsageError(f"there is no file {key}, which [service] names for TLS") from None
    if status.st_mode & (0o077 if status.st_uid == os.geteuid() else 0o027):
        raise UsageError(f"{key} can be read by others, who could then read what analysts send: chmod 600 it")
