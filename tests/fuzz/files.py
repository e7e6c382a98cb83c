"""Files of data to try: csv, edge lists, graphs and parquet, with odd bytes put in, cut, doubled or exchanged."""

from __future__ import annotations

import gzip
import io
from functools import cache

from hypothesis import strategies as st

CSV = [
    b"who,amount,x,ok,day\na,1,0.5,true,2020-02-29\nb,-2,1e3,FALSE,1999-12-31\n",
    b'\xef\xbb\xbfwho,amount,x,ok,day\r\n"a ""b"", c",9223372036854775807,,true,\r\n'
    b'"two\nlines",0,-0.0,false,0001-01-01\r\n',
    b"day,ok,x,amount,who,more\n2020-01-01,true,1,2,\xc3\xa9,3\n\n2020-01-02,false,2,3,,4\n",
]
EDGES = [
    b"# a graph\n1 2\n2 3\n3 1\n",
    b"1\t2\r\n2\t3\r\n% more\n10\t20\t0.5\n",
    b"src,dst\n1,2\n2,1\n",
]
GRAPHS = [
    b"%%MatrixMarket matrix coordinate pattern symmetric\n% a\n3 3 2\n2 1\n3 2\n",
    b"##MatrixMarket matrix coordinate real general\n3 3 2\n2 1 1\n3 2 1\n",
    b"% a\n3 2 011 1\n1 2 5\n1 1 5 3 7\n1 2 7\n",
    b'*Vertices 3\n1 "a b"\n2 c\n3 "d"\n*Arcs\n1 2\n2 3 2.5\n',
    b'Creator "x"\ngraph [ directed 0 node [ id 5 label "a" ] node [ id 7 label "c" ] edge [ source 5 target 7 ] ]\n',
    b'<?xml version="1.0"?><graphml><graph edgedefault="directed"><node id="1"/><node id="2"/>'
    b'<edge source="1" target="2"/></graph></graphml>',
]
PIECES = [
    b"", b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\r", b"\n", b"\r\n", b"\x1a", b"\x85",
    b"\xe2\x80\xa8",
    b'"', b'""', b"'", b",", b",,,,", b"\t", b" ", b"\\", b"nan", b"inf", b"-inf", b"1e999", b"0x1f", b"1_000",
    b"+1", b"-0",
    b"9223372036854775808", b"1" * 400, b"a" * 70_000, b"\n" * 3000, b",\n" * 3000, b"2020-02-30", b"99999-01-01",
    b"null",
    b"\xd9\xa3", b"\x1f\x8b", b"PAR1", b"#", b"%", b"//", b"=1+1", b"\x01", b"true", b"1 2 3 4", b"\"a\" b",
]  # fmt: skip
SUFFIXES = [".csv", ".csv.gz", ".txt", ".tsv", ".edges", ".edges.gz", ".mtx", ".graph", ".parquet"]


@cache
def parquet() -> list[bytes]:
    """Parquet files of the columns that the csv files have, of several kinds and encodings."""
    import datetime

    import pyarrow as pa
    import pyarrow.parquet as pq

    day = datetime.date(2020, 2, 29)
    columns = {"who": ["a", "b"], "amount": [1, None], "x": [0.5, None], "ok": [True, False], "day": [day, None]}
    files = []
    for table, options in [
        (pa.table(columns), {}),
        (pa.table({**columns, "who": pa.array(["a", "a"]).dictionary_encode()}), {"compression": "gzip"}),
        (pa.table({"src": [1, 2], "dst": [2, 3]}), {"compression": None, "use_dictionary": False}),
    ]:
        buffer = io.BytesIO()
        pq.write_table(table, buffer, **options)
        files.append(buffer.getvalue())
    return files


@st.composite
def mutated(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """One of the files, with some changes."""
    content = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 5))):
        at, more = draw(st.integers(0, len(content))), draw(st.integers(0, 20))
        match draw(st.integers(0, 4)):
            case 0:
                content[at:at] = draw(st.sampled_from(PIECES))
            case 1:
                content[at : at + more] = draw(st.sampled_from(PIECES))
            case 2:
                del content[at : at + more]
            case 3:
                content[at : at + 1] = bytes([draw(st.integers(0, 255))])
            case _:
                del content[at:]
    return bytes(content)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, bytes]:
    """The ending of a file's name, and its bytes."""
    suffix = draw(st.sampled_from(SUFFIXES))
    seeds = parquet() if suffix == ".parquet" else CSV if suffix.startswith(".csv") else [*EDGES, *GRAPHS]
    content = draw(mutated(seeds if draw(st.integers(0, 9)) else [*CSV, *EDGES]))
    if suffix.endswith(".gz"):
        content = gzip.compress(content, mtime=0)
        if not draw(st.integers(0, 3)):
            content = draw(mutated([content]))
    return suffix, content
