"""Cassandra's `.pomdp` format (of the solver pomdp-solve), read as a flat POMDP.

    discount: 0.95                       values: reward | cost
    states: 4 | names                    actions: 2 | names               observations: 2 | names
    start: probabilities | uniform | state      start include: states     start exclude: states
    T: action : state : next state p     T: action : state  row           T: action  matrix
    O: action : next state : seen p      O: action : next state  row      O: action  matrix
    R: action : state : next state : seen r     … a row over what is seen     … a matrix

`*` stands for all, `uniform` and `identity` for rows and matrices, numbers for names; `#` begins a comment; what comes
later counts. `flat` says which of these POMDPs are hidden-model problems.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.io.formats.hidden_model import Names, as_number, check_cells, read_text
from beliefbound.base.validation import FloatArray

_TOKEN = re.compile(r"[^\s:]+|:")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
_HEADS = ("discount", "values", "states", "actions", "observations", "start", "T", "O", "R")
_MOST = 1_000_000


class Token(NamedTuple):
    """A word, and its line."""

    text: str
    line: int


class Reward(NamedTuple):
    """One `R:` statement: ids, or −1 for all; what is left open is given by a row or matrix."""

    action: int
    state: int
    arrival: int
    seen: int
    values: FloatArray


@dataclass
class FlatPomdp:
    """A POMDP as the file has it. `moves[a,x,y]`, `shows[a,y,z]`; rewards as the statements that make them up."""

    path: Path
    discount: float
    states: Names
    actions: Names
    observations: Names
    start: FloatArray
    moves: FloatArray
    shows: FloatArray
    rewards: list[Reward]


class _Reader:
    """Tokens one after the other."""

    def __init__(self, path: Path) -> None:
        self.path, self.at = path, 0
        try:
            text = read_text(path).decode()
        except UnicodeDecodeError:
            raise FileError(f"{path} is not a text file in UTF-8") from None
        self.tokens = [
            Token(word, number)
            for number, line in enumerate(text.splitlines(), 1)
            for word in _TOKEN.findall(line.partition("#")[0])
        ]
        self.sizes: dict[str, int] = {}
        self.names: dict[str, Names] = {}
        self._place: dict[str, dict[str, int]] = {}

    def wrong(self, fault: str, token: Token | None = None) -> FileError:
        where = (
            f", line {token.line}" if token else f", line {self.tokens[self.at].line}" if self.left else " at its end"
        )
        return FileError(f"{self.path}{where}: {fault}")

    @property
    def left(self) -> bool:
        return self.at < len(self.tokens)

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead].text if self.at + ahead < len(self.tokens) else ""

    def take(self) -> Token:
        if not self.left:
            raise self.wrong("the file ends in the middle of a statement")
        self.at += 1
        return self.tokens[self.at - 1]

    def colon(self) -> None:
        token = self.take()
        if token.text != ":":
            raise self.wrong(f"{token.text[:40]!r} stands where ':' is expected", token)

    def begins(self) -> bool:
        """Whether a new statement begins here."""
        if self.peek() == "start" and self.peek(1) in ("include", "exclude"):
            return True
        return self.peek() in _HEADS and self.peek(1) == ":"

    def number(self) -> float:
        token = self.take()
        try:
            return as_number(token.text)
        except ValueError:
            raise self.wrong(f"{token.text[:40]!r} is not a number up to 1e300", token) from None

    def numbers(self, count: int) -> FloatArray:
        return np.array([self.number() for _ in range(count)])

    def define(self, kind: str) -> None:
        """`states: 4` or `states: left right`."""
        if kind in self.sizes:
            raise self.wrong(f"{kind} are given twice")
        words = []
        while self.left and not self.begins():
            words.append(self.take())
        if not words:
            raise self.wrong(f"{kind}: gives neither a number nor names")
        listed: Names = tuple(word.text for word in words)
        if len(words) == 1 and words[0].text.isdecimal():
            if not 1 <= len(words[0].text) < 8 or not 1 <= int(words[0].text) <= _MOST:
                raise self.wrong(f"{kind}: give a number from 1 to {_MOST}", words[0])
            self.sizes[kind], listed = int(words[0].text), None
        else:
            self.sizes[kind] = len(words)
            for word in words:
                if word.text[0].isdigit() or word.text in ("*", ":"):
                    raise self.wrong(f"{word.text[:40]!r} is no name; names begin with a letter", word)
            if len(set(listed or ())) != len(words):
                raise self.wrong(f"{kind}: a name is given twice", words[0])
        self.names[kind] = listed
        self._place[kind] = {name: i for i, name in enumerate(listed or ())}

    def ids(self, kind: str) -> int:
        """The number of a state, action or observation; −1 for all of them."""
        if kind not in self.sizes:
            raise self.wrong(f"{kind} must be given before they are used")
        token = self.take()
        if token.text == "*":
            return -1
        found = self._place[kind].get(token.text)
        if found is None and token.text.isdecimal() and len(token.text) < 10 and int(token.text) < self.sizes[kind]:
            found = int(token.text)
        if found is None:
            raise self.wrong(f"{token.text[:40]!r} is not among the {self.sizes[kind]} {kind}", token)
        return found


def read_flat(path: Path) -> FlatPomdp:
    """The POMDP of a file, statement by statement."""
    reader = _Reader(path)
    discount: float | None = None
    sign, start = 1.0, None
    moves = shows = np.empty(0)
    rewards: list[Reward] = []
    while reader.left:
        head = reader.take()
        if head.text == "start":
            start = _start(reader)
            continue
        if head.text not in _HEADS:
            raise reader.wrong(f"{head.text[:40]!r} begins no statement; known are {', '.join(_HEADS)}", head)
        reader.colon()
        if head.text == "discount":
            discount = reader.number()
            if not 0.0 <= discount <= 1.0:
                raise reader.wrong(f"discount is {discount:g}; it must lie between 0 and 1", head)
        elif head.text == "values":
            word = reader.take()
            if word.text not in ("reward", "cost"):
                raise reader.wrong(f"values are {word.text[:40]!r}; give reward or cost", word)
            sign = 1.0 if word.text == "reward" else -1.0
        elif head.text in ("states", "actions", "observations"):
            reader.define(head.text)
        else:
            if not moves.size:
                moves, shows = _tables(reader, head)
            if head.text == "T":
                _fill(reader, moves, "states")
            elif head.text == "O":
                _fill(reader, shows, "observations")
            else:
                rewards.append(_reward(reader))
    for name, there in (("discount", discount is not None), *((k, k in reader.sizes) for k in _HEADS[2:5])):
        if not there:
            raise FileError(f"{path} has no statement '{name}:'")
    if not moves.size:
        raise FileError(f"{path} has no statement 'T:'")
    assert discount is not None
    n = reader.sizes["states"]
    return FlatPomdp(
        path,
        discount,
        reader.names["states"],
        reader.names["actions"],
        reader.names["observations"],
        np.full(n, 1.0 / n) if start is None else start,
        moves,
        shows,
        [reward._replace(values=sign * reward.values) for reward in rewards],
    )


def _tables(reader: _Reader, head: Token) -> tuple[FloatArray, FloatArray]:
    for kind in ("states", "actions", "observations"):
        if kind not in reader.sizes:
            raise reader.wrong(f"{kind}: must come before the first {head.text}:", head)
    n, a, z = (reader.sizes[kind] for kind in ("states", "actions", "observations"))
    for shape in ((a, n, n), (a, n, z)):
        check_cells(shape, reader.path, "a table of probabilities")
    return np.zeros((a, n, n)), np.zeros((a, n, z))


def _start(reader: _Reader) -> FloatArray:
    word = reader.take()
    if word.text in ("include", "exclude"):
        reader.colon()
    elif word.text != ":":
        raise reader.wrong(f"{word.text[:40]!r} stands where ':' is expected", word)
    if "states" not in reader.sizes:
        raise reader.wrong("states: must come before start:", word)
    n = reader.sizes["states"]
    if word.text == ":":
        if reader.peek() == "uniform":
            reader.take()
            return np.full(n, 1.0 / n)
        one = reader.begins() or not reader.left or not _NUMBER.match(reader.peek())
        if one or (n > 1 and (reader.at + 1 == len(reader.tokens) or not _NUMBER.match(reader.peek(1)))):
            return _chosen(reader, n, 1)
        return reader.numbers(n)
    return _chosen(reader, n, n, without=word.text == "exclude")


def _chosen(reader: _Reader, n: int, most: int, *, without: bool = False) -> FloatArray:
    """Equal chances for up to `most` states that are named, or for all but them."""
    chosen = np.full(n, without)
    for _ in range(most):
        if not reader.left or reader.begins():
            break
        chosen[_all(reader.ids("states"))] = not without
    if not chosen.any():
        raise reader.wrong("start leaves no state")
    return np.where(chosen, 1.0 / chosen.sum(), 0.0)


def _fill(reader: _Reader, table: FloatArray, kind: str) -> None:
    """One `T:` or `O:` statement."""
    where: list[int | slice] = [_all(reader.ids("actions"))]
    for axis in ("states", kind):
        if reader.peek() != ":":
            break
        reader.colon()
        if reader.begins() or not reader.left:
            break
        where.append(_all(reader.ids(axis)))
    if len(where) == 3:
        table[tuple(where)] = reader.number()
        return
    rows, columns = table.shape[1:]
    if reader.peek() == "uniform":
        reader.take()
        table[tuple(where)] = 1.0 / columns
    elif reader.peek() == "identity":
        word = reader.take()
        if len(where) == 2 or rows != columns:
            raise reader.wrong("identity needs a square matrix", word)
        table[tuple(where)] = np.eye(rows)
    elif len(where) == 2:
        table[tuple(where)] = reader.numbers(columns)
    else:
        table[tuple(where)] = reader.numbers(rows * columns).reshape(rows, columns)


def _reward(reader: _Reader) -> Reward:
    ids = [reader.ids("actions")]
    for kind in ("states", "states", "observations"):
        if reader.peek() != ":":
            break
        reader.colon()
        ids.append(reader.ids(kind))
    if len(ids) < 2:
        raise reader.wrong("a reward needs an action and a state: R: action : state …")
    n, z = reader.sizes["states"], reader.sizes["observations"]
    values = reader.numbers({4: 1, 3: z, 2: n * z}[len(ids)])
    action, state, arrival, seen = (*ids, -1, -1)[:4]
    return Reward(action, state, arrival, seen, values.reshape({4: (1,), 3: (z,), 2: (n, z)}[len(ids)]))


def _all(i: int) -> int | slice:
    return slice(None) if i < 0 else i
