"""Writes a log of machines that wear and are replaced: python examples/make_log.py [replacement.csv] [rows]

Five conditions. Operating pays 10 less 2.5 for each class of wear; replacing costs 8, then the new machine is operated.
Whoever made this log replaced machines that were failing, and others now and then.
"""

import sys

import numpy as np
import polars as pl

CONDITIONS = ("1 new", "2 good", "3 worn", "4 poor", "5 failing")
ACTIONS = ("operate", "replace")
WEAR = (0.3, 0.4, 0.2, 0.1)  # chances to wear by 0, 1, 2, 3 classes
MACHINE_ROWS = 40  # the log follows each machine hall for so many periods


def steps(rows: int, rng: np.random.Generator) -> list[tuple]:
    """Rows of the log: each hall begins with a new machine, and is followed until its records end."""
    found, condition = [], 0
    for k in range(rows):
        hall, t = divmod(k, MACHINE_ROWS)
        condition = 0 if t == 0 else condition
        replace = rng.random() < (0.7 if condition == 4 else 0.1)
        used = 0 if replace else condition
        paid = 10.0 - 2.5 * used - 8.0 * replace
        after = min(4, used + int(rng.choice(4, p=WEAR)))
        last = t == MACHINE_ROWS - 1 or k == rows - 1
        names = CONDITIONS[condition], ACTIONS[replace], paid, CONDITIONS[after]
        found.append((hall, t, *names, False, last))
        condition = after
    return found


def main() -> None:
    file = sys.argv[1] if len(sys.argv) > 1 else "replacement.csv"
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    columns = ["episode", "t", "state", "action", "reward", "next_state", "terminated", "truncated"]
    pl.DataFrame(steps(rows, np.random.default_rng(7)), schema=columns, orient="row").write_csv(file)
    print(f"{file}: {rows} rows")


if __name__ == "__main__":
    main()
