"""Commands of the command line that are more than a few lines; `wpinq.cli` puts them together."""
