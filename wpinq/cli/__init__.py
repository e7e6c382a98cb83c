"""The commands of the command line, one a module; `wpinq.cli` puts them together."""
