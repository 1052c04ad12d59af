"""Logs that are in memory already: a DataFrame of polars or pandas, an Arrow table, a dictionary of columns.

Nothing is imported to find out: whoever has a DataFrame has imported its library.
"""

from collections.abc import Mapping
from typing import Any

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import shown


def is_table(given: Any) -> bool:
    """Whether something holds columns by name.

    >>> is_table({"state": [0, 1]}), is_table("log.csv")
    (True, False)
    """
    return isinstance(given, Mapping) or _is_pandas(given) or hasattr(given, "__arrow_c_stream__") or _is_lazy(given)


def frame_of(given: Any) -> Any:
    """A table as a DataFrame of polars."""
    from beliefbound.base.tables import pl

    if _is_lazy(given):
        given = given.collect()
    if _is_pandas(given):
        given = {str(name): _cells(given[name]) for name in given.columns}
    try:
        return pl.DataFrame(dict(given) if isinstance(given, Mapping) else given, strict=False)
    except Exception as cause:  # whatever polars raises for columns that do not fit together
        reason = (str(cause).splitlines() or [type(cause).__name__])[0]
        raise ParameterError(f"log is {shown(given)[:60]}, which is no table: {reason}") from None


def _cells(column: Any) -> list[Any]:
    """A column of pandas, `None` where there is nothing."""
    return [None if gone else cell for cell, gone in zip(column.tolist(), column.isna().tolist(), strict=True)]


def _is_pandas(given: Any) -> bool:
    return type(given).__module__.partition(".")[0] == "pandas" and hasattr(given, "isna") and hasattr(given, "columns")


def _is_lazy(given: Any) -> bool:
    return type(given).__module__.partition(".")[0] == "polars" and type(given).__name__ == "LazyFrame"
