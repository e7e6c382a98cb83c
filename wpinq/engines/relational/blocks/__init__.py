"""Datasets as terms over tables: values column by column, select-from-where blocks, relations. Nothing is written."""
