"""Print the addresses at which a Ray cluster of this machine listens, as the kernel writes them.

`python -m support.listening`: the sockets of this process and of all it started, from `/proc`.
"""

import os
from contextlib import suppress
from pathlib import Path

from beliefbound.base.executors import opened


def family():
    """The numbers of this process and of its descendants."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def sockets(pid):
    """The sockets a process has open."""
    found = set()
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.add(os.readlink(link))
    return found


def main():
    """Start a cluster, use it, and look."""
    with opened("ray", threads=1) as executor:
        assert list(executor.map(abs, [-7])) == [(-7, 7)]
        own = set().union(*map(sockets, family()))
        for name in ("tcp", "tcp6"):
            for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
                _, address, _, state, *_, inode = line.split()[:10]
                if state == "0A" and f"socket:[{inode}]" in own:
                    print(address.split(":")[0])


if __name__ == "__main__":
    main()
