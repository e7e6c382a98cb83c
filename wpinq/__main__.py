"""`python -m wpinq`: the command line."""

from wpinq.cli import main

raise SystemExit(main())
