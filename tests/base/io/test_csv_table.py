"""Tables of comma-separated values: what is read, and what is refused with its line."""

import csv
import math

import numpy as np
import pytest

from beliefbound.base.errors import FileError
from beliefbound.base.io.csv_table import as_numbers, csv_text, ids, number_of, numbers, read_table


def table(tmp_path, text, columns=("a", "b"), **knobs):
    (tmp_path / "x.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    return read_table(tmp_path / "x.csv", list(columns), **knobs)


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,x\n\n2,y z\n",
        "\ufeffb , a\r\nx,1\r\n\r\n y z ,2\r\n",
        "a;b;c\n1;x\n;;\n2;y z;4\n",
        'a\tb\n1\t"x"\n\t\n2\t"y z"\n',
        '"a"|b\n1|x\n|\n2|y z',
    ],
)
def test_cells_are_stripped_and_blank_lines_are_dropped(tmp_path, text):
    found = table(tmp_path, text)
    assert (found["a"], found["b"], found.line) == (["1", "2"], ["x", "y z"], [2, 4])
    assert ids(found, "a", tmp_path).tolist() == [1, 2]


def test_lines_are_those_of_the_file_also_where_cells_have_several(tmp_path):
    found = table(tmp_path, 'a,b\n"one\ntwo",1\n,\nx,2\n')
    assert (found["a"], found.line) == (["one\ntwo", "x"], [3, 5])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.csv is empty; expected the columns a, b"),
        ("a,b\n", "a header but no rows"),
        ("a,b\n,\n", "a header but no rows"),
        ("a,c\n1,2\n", "no column 'b'; its header is 'a, c'"),
        ("a,b,b\n1,2,3\n", "more than one column 'b'"),
        ("a,b\n1,2,3\n", "line 2 has 3 cells, its header 2"),
        ('a,b\n1,"2\n', "not a table of comma-separated values: unexpected end of data"),
        (b"a,b\n1,\xff\n", "not a table of comma-separated values"),
        (b"a,b\n1," + b"2" * 200_000, "not a table of comma-separated values: field larger"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, said):
    with pytest.raises(FileError, match=said):
        table(tmp_path, text)


@pytest.mark.parametrize("cell", ["", "x", "nan", "inf", "-1e999", "1_000", '"1,5"', "0x10"])
def test_what_is_no_finite_number_is_refused_with_its_line(tmp_path, cell):
    found = table(tmp_path, f"a,b\n1,2\n3,{cell}\n")
    with pytest.raises(FileError, match="line 3: b is .*; expected a finite number"):
        numbers(found, "b", tmp_path / "x.csv")


def test_what_is_written_is_read_back_bit_for_bit(tmp_path):
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.random(200) * 10.0 ** rng.integers(-300, 300, 200), [0.1 + 0.2, 5e-324, -0.0]])
    names = [f'a "{k}", b\n;' for k in range(len(values))]
    found = table(tmp_path, csv_text({"a": names, "b": values}))
    assert found["a"] == [name.strip() for name in names]
    assert as_numbers(found["b"]).tobytes() == values.tobytes()


def test_blocks_make_no_difference(tmp_path, monkeypatch):
    """Against Python's own reader."""
    rng = np.random.default_rng(2)
    text = "a,b\n" + "".join(f"{x:.3g},{y}\n" for x, y in zip(rng.random(999), rng.integers(0, 5, 999), strict=True))
    monkeypatch.setattr("beliefbound.base.io.csv_table._BLOCK", 100)
    found = table(tmp_path, text)
    rows = list(csv.reader(text.splitlines()))[1:]
    assert [*zip(found["a"], found["b"], strict=True)] == [tuple(row) for row in rows]
    assert found.line == list(range(2, 1001))


def test_numbers_are_those_of_python():
    for text in ("1", "-1.5e-3", "+2", ".5", "5."):
        assert number_of(text) == float(text)
    assert math.isnan(number_of(None))
