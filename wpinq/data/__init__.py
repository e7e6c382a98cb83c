"""What a curator offers becomes `{record: weight}` of a declared type, or is refused as a whole."""

from wpinq.data.edges import EdgeList
from wpinq.data.read import read_source

__all__ = ["EdgeList", "read_source"]
