"""polars, for tables of any length: logs and experiments are read and kept with it. Bounds of models need none, so it
is an extra; whoever imports it does so from here, and is told what to install where it is not there."""

from beliefbound.base.errors import MissingExtraError

try:
    import polars as pl
except ModuleNotFoundError:
    raise MissingExtraError(
        "logs and experiments need polars, which is not installed; pip install 'beliefbound[logs]' for logs, "
        "'beliefbound[lab]' for experiments, or polars itself"
    ) from None

__all__ = ["pl"]
