"""`python -m wpinq`: the command line."""

from wpinq.cli.main import main

raise SystemExit(main())
