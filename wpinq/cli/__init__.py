"""The commands of the command line, one a module; `wpinq.cli.main` puts them together."""
