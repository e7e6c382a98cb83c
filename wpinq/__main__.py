"""`python -m wpinq`, and the command `wpinq`: the command line, once its modules are loaded."""

import contextlib
import os
import signal
import sys

from wpinq import __version__


def main() -> int:
    """Run the command line; Ctrl-C while its modules load ends it with one line.

    There is nothing to clean up then, and modules of others may make of KeyboardInterrupt another error, or nothing.
    """
    if sys.argv[1:] == ["--version"]:  # without these modules, which take most of a second
        with contextlib.suppress(OSError):  # which the command line tells
            os.write(1, f"wpinq {__version__}\n".encode())
            return 0
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: (os.write(2, b"wpinq: interrupted\n"), os._exit(130)))
    from wpinq.cli.main import main as run

    signal.signal(signal.SIGINT, handler)
    return run()


if __name__ == "__main__":
    raise SystemExit(main())
