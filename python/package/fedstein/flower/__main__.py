"""`python -m fedstein.flower`: writes a project, and checks a node before a run."""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import flwr

from .._fedstein import ConfigError, __version__
from .._fedstein import main as _command
from ._project import untested, write


def _number(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 1_000_000:
        raise argparse.ArgumentTypeError("it must be a number of sites, 1 or more")
    return number


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} must be HOST:PORT")
    return host.strip("[]"), int(port)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fedstein.flower", description="Federations over Flower.")
    commands = parser.add_subparsers(dest="command", required=True)
    new = commands.add_parser("new", help="write a project that `flwr run` runs")
    new.add_argument("directory", type=Path, help="a new directory; its name becomes that of the app")
    new.add_argument("--sites", type=_number, help="number of sites with a site.toml of their own; else a simulation")
    check = commands.add_parser("check", help="say what is missing on a node before a run")
    check.add_argument("site", type=Path, help="the site's own file, site.toml")
    check.add_argument(
        "--superlink", type=_address, help="HOST:PORT of the SuperLink, to see whether it can be reached"
    )
    check.add_argument("--port", type=int, default=9094, help="port of this node's SuperNode (default: 9094)")
    return parser


def _listens(port: int) -> str | None:
    """Why nothing can listen at a port of this machine."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            return f"port {port} of this machine: {error}; name another with --port, here and to flower-supernode"
    return None


def _reaches(address: tuple[str, int]) -> str | None:
    """Why a SuperLink cannot be reached."""
    try:
        socket.create_connection(address, timeout=5).close()
    except OSError as error:
        return f"the SuperLink {address[0]}:{address[1]}: {error}"
    return None


def _writes(site: Path) -> str | None:
    """Why the site's state cannot be written."""
    try:
        with tempfile.TemporaryDirectory(dir=site.resolve().parent):
            return None
    except OSError as error:
        return f"{site.resolve().parent}: {error.strerror}; the site's state is kept there"


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command line and return the exit code."""
    typed = _parser().parse_args(arguments)
    if typed.command == "new":
        try:
            write(typed.directory, typed.sites)
        except ConfigError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        print(f"{typed.directory}: pyproject.toml and README.md, which says how to run it")
        return 0
    # What the server would be told of this site; the command says itself what is wrong.
    code = _command(["fedstein", "site", "check", str(typed.site)], None)
    problems = [untested(), _listens(typed.port), _writes(typed.site)]
    if typed.superlink is not None:
        problems.append(_reaches(typed.superlink))
    for problem in filter(None, problems):
        print(f"missing: {problem}", file=sys.stderr)
        code = code or 1
    if code == 0:
        print(f"\nThis node is ready: fedstein {__version__}, Flower {flwr.__version__}.")
    return code


if __name__ == "__main__":
    sys.exit(main())
