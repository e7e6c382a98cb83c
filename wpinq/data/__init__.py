"""What a curator offers becomes `{record: weight}` of a declared type, or is refused as a whole."""

from wpinq.ingest.edge_list import EdgeList
from wpinq.ingest.reading import read_source

__all__ = ["EdgeList", "read_source"]
