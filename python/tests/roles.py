"""A SuperLink, SuperNodes and `flwr run` on the loopback, each in a process group of its own with a hard time limit."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

from conftest import LIMIT

SCRIPTS = Path(sysconfig.get_path("scripts"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within {LIMIT:.0f} s"
        time.sleep(0.1)


class Roles:
    """The processes of a federation in a directory; `end` ends all of them."""

    def __init__(self, directory: Path, *, tls: bool = False, database: bool = False) -> None:
        self.directory = directory
        self.port = free_port()
        self.tls, self.database = tls, database
        self.groups: dict[str, subprocess.Popen[bytes]] = {}
        home = directory / "flwr-home"
        home.mkdir()
        security = f'root-certificates = "{directory}/ca.crt"' if tls else "insecure = true"
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "lab"\n[superlink.lab]\naddress = "127.0.0.1:{self.port}"\n{security}\n'
        )
        keep = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
        self.environment = {
            **keep,
            "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}",
            "FLWR_HOME": os.fspath(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
            "RAYON_NUM_THREADS": "1",
            "NO_COLOR": "1",
        }

    def start(self, name: str, command: str) -> None:
        """Start a role; what it prints is added to NAME.log."""
        with (self.directory / f"{name}.log").open("ab") as log:
            self.groups[name] = subprocess.Popen(
                shlex.split(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                cwd=self.directory,
                start_new_session=True,
            )

    def superlink(self, *, simulation: bool = False) -> None:
        security = "--insecure"
        if self.tls:
            here = self.directory
            security = (
                f"--ssl-ca-certfile {here}/ca.crt --ssl-certfile {here}/server.crt --ssl-keyfile {here}/server.key"
            )
        security += " --simulation" if simulation else ""
        database = f"--database {self.directory}/state.db" if self.database else ""
        self.start(
            "superlink",
            f"flower-superlink {security} --host 127.0.0.1 --port {self.port} {database} "
            "--disable-runtime-dependency-installation",
        )
        wait_until(self._listens, "the SuperLink's start")

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def node(
        self, index: int, site: Path | None, *, name: str | None = None, program: str = "flower-supernode"
    ) -> None:
        """Start the SuperNode of a site."""
        security = f"--root-certificates {self.directory}/ca.crt" if self.tls else "--insecure"
        config = f"partition-id={index}" + ("" if site is None else f' site="{site}"')
        self.start(
            name or f"node{index}",
            f"{program} {security} --superlink 127.0.0.1:{self.port} --port {free_port()} "
            f"--node-config {shlex.quote(config)}",
        )

    def kill(self, name: str) -> None:
        """End a role and all that it has started, at once."""
        group = self.groups.pop(name)
        # SuperExec and the apps have sessions of their own.
        members = [pid for pid in self._tree(group.pid)]
        for pid in [group.pid, *members]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        group.wait(timeout=LIMIT)

    def _tree(self, root: int) -> list[int]:
        """The processes below one."""
        listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        children: dict[int, list[int]] = {}
        for line in listed.splitlines():
            pid, parent = map(int, line.split())
            children.setdefault(parent, []).append(pid)
        found, open_ = [], [root]
        while open_:
            below = children.get(open_.pop(), [])
            found += below
            open_ += below
        return found

    def runs(self, name: str, program: str) -> bool:
        """Whether a role runs an app: `flwr-serverapp` or `flwr-clientapp`."""
        tree = self._tree(self.groups[name].pid)
        # `-ww`: whole command lines. Otherwise `ps` cuts them at $COLUMNS, and with a long path the name is beyond it.
        wide = ["ps", "-e", "-ww", "-o", "pid=,stat=,args="]
        listed = subprocess.run(wide, capture_output=True, text=True, check=True)
        lines = [line.split(None, 2) for line in listed.stdout.splitlines()]
        return any(int(pid) in tree and state[0] != "Z" and program in args for pid, state, args in lines)

    def end(self) -> None:
        for name in list(self.groups):
            self.kill(name)

    def log(self, name: str) -> str:
        path = self.directory / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def flwr(self, *args: str) -> str:
        """A command of Flower; what it prints."""
        done = subprocess.run(
            [shutil.which("flwr", path=os.fspath(SCRIPTS)) or "flwr", *args],
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.directory,
            timeout=LIMIT,
        )
        output = done.stdout + done.stderr
        assert done.returncode == 0, output
        return output
