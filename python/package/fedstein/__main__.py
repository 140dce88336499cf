"""The command `fedstein`."""

import shutil
import signal
import sys
import sysconfig
from pathlib import Path

from ._fedstein import main as _main


def _program() -> Path | None:
    """The installed command, which starts itself again for sites; the interpreter could not take its place."""
    found = shutil.which("fedstein", path=sysconfig.get_path("scripts")) or shutil.which("fedstein")
    return None if found is None else Path(found)


def main() -> None:
    """Carry out the command line and end the process with its exit code."""
    # The command has its own answer to Ctrl-C; Python's would print a traceback after it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_main(["fedstein", *sys.argv[1:]], _program()))


if __name__ == "__main__":
    main()
