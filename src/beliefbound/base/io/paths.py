"""Names of files and folders, checked where they come in."""

import errno
import os
from pathlib import Path
from typing import Any

from beliefbound.base.errors import FileError


def as_path(given: Any) -> Path:
    """A name of a file or folder that the system can hold; whether there is one is another matter.

    >>> as_path("models").name
    'models'
    """
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise FileError(f"expected the name of a file or folder, got {type(given).__name__}; give a text or a Path")
    path = Path(given)
    try:
        path.lstat()
    except (ValueError, UnicodeEncodeError) as cause:
        raise FileError(f"{str(path)[:100]!a} is no name of a file or folder: {cause}") from None
    except OSError as cause:
        if cause.errno == errno.ENAMETOOLONG:
            raise FileError(f"{str(path)[:100]!a}… is too long for the name of a file or folder") from None
    return path
