"""Protected data: offered data become `{record: weight}` of a declared type, or are refused."""

from wpinq.data.edges import EdgeList
from wpinq.data.files import CsvFile
from wpinq.data.read import read_source

__all__ = ["CsvFile", "EdgeList", "read_source"]
