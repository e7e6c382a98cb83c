"""`python -m wpinq`, and the command `wpinq`: the command line, once its modules are loaded."""

import contextlib
import gc
import os
import signal
import sys

from wpinq import __version__

#: Most objects of a command stay to its end: looking through them again and again took a seventh of a synthesis.
_COLLECT_RARELY = 100_000, 50, 100


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
    gc.set_threshold(*_COLLECT_RARELY)
    from wpinq.cli.main import main as run

    signal.signal(signal.SIGINT, handler)
    code = run()
    gc.freeze()  # the rest goes with the process: looking through it once more took half a second
    return code


if __name__ == "__main__":
    raise SystemExit(main())
