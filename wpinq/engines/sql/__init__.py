"""Terms and blocks as SQL text: dialects, the writer, sums that keep their bits, and the script of a plan."""

from __future__ import annotations


# The relational engine: plans as SQL over flat columns, run by an embedded database or by Spark.


# Datasets as terms over tables: values column by column, select-from-where blocks, relations. Nothing is written.
