"""The project that `python -m fedstein.flower new` writes."""

from __future__ import annotations

import re
from pathlib import Path

import flwr

from .._fedstein import ConfigError, __version__

__all__ = ["FLOWER", "untested", "write"]

# The versions of Flower that are tested: from this one on, and below that one.
FLOWER = ((1, 40), (1, 43))

_APP = """\
[project]
name = "{name}"
version = "1.0.0"
description = "Federated Bayesian learning with fedstein"
license = "Apache-2.0"
dependencies = ["flwr>={low},<{high}", "fedstein=={version}"]

[tool.flwr.app]
publisher = "{name}"

[tool.flwr.app.components]
serverapp = "fedstein.flower:server_app"
clientapp = "fedstein.flower:client_app"

# The keys of fedstein (docs/configuration.md), and these of its server app:
[tool.flwr.app.config]
out = "~/fedstein/{name}"     # the run's files, on the machine of the SuperLink
{sites}force = false                 # whether an earlier run in `out` is replaced
resume = false                # whether the run in `out` is continued
muster-seconds = 600          # how long the sites are waited for at the start
rejoin-seconds = 5            # how long a message waits for the node of its site
poll-seconds = 0.2            # the time between two looks for answers
config = ""                   # a TOML file of fedstein on the machine of the SuperLink, under the keys here
set = ""                      # more keys of fedstein: "optimizer.lr=1e-2 kernel.kind=imq"
name = "{name}"
rounds = {rounds}
seed = 1
{data}
[tool.flwr.app.config.model]
kind = "bnn"
hidden = "[50]"               # Flower's config has no lists: TOML in a text

[tool.flwr.app.config.algorithm]
kind = "newton-dsvgd"
particles = 20
local_steps = 200

[tool.flwr.app.config.checkpoint]
every_seconds = 0.0           # after every round: `flwr stop` ends a run at once
"""

_SITES = """\
sites = {sites}                     # as many as there are partition-ids
"""

_OF_SITES = """
# The rows are those of the nodes' own site.toml.
[tool.flwr.app.config.data]
kind = "sites"

# Where sites hold out validation rows (`validation_fraction` in site.toml), a run can end after so many rounds without
# a better one; its results are those of the best round.
# [tool.flwr.app.config.stop]
# patience = 10
"""

_OF_SIMULATION = """
# A simulation of fedstein's built-in experiment: digits at {clients} clients with three labels each.
[tool.flwr.app.config.data]
kind = "digits"

[tool.flwr.app.config.partition]
kind = "labels-per-client"
clients = {clients}
labels = 3
"""

_README = """\
# {name}

A Flower app with the algorithms of fedstein. There is no code in it: `pyproject.toml` names the apps of the installed
package and their config.

"""

_README_SIMULATION = """\
It simulates {clients} clients on this machine:

```sh
pip install "./python[flower,simulation]"      # in a checkout of fedstein, which is on no index
export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1
flwr run . --stream --federation-config "num-supernodes={clients} client-resources-num-cpus=1"
```

`fedstein train` does the same without Flower, faster and with the same result. For real sites, write a project with
`python -m fedstein.flower new DIR --sites K`.
"""

_README_SITES = """\
It trains {sites} sites, each with a SuperNode and a file `site.toml` of its own. On every machine:

```sh
# In a checkout of fedstein, which is on no index; or with its wheel, "fedstein-….whl[flower]".
pip install "./python[flower]"
```

The SuperLink:

```sh
flower-superlink --insecure --host 127.0.0.1 --port 8000 --disable-runtime-dependency-installation
```

Each site, with its own partition-id from 0 to {last}, its own file, and a port of its own on a shared machine:

```sh
fedstein site init cases.csv --index 0 --name north      # writes site.toml; --index is the partition-id
fedstein site check site.toml                            # what this site would tell
python -m fedstein.flower check site.toml --superlink 127.0.0.1:8000
flower-supernode --insecure --superlink 127.0.0.1:8000 --port 9094 \\
  --node-config 'partition-id=0 site="/path/of/site.toml"'
```

`--insecure` is for one machine. Between machines use TLS and node keys, and read "Whom you trust" in fedstein's
docs/flower.md first: a SuperNode runs the code of the app that the SuperLink sends.

The run, after a section `[superlink.lab]` with `address = "127.0.0.1:8000"` and `insecure = true` in Flower's
config.toml (`$FLWR_HOME`, else `~/.flwr`):

```sh
flwr run . lab --stream
```
"""

_README_END = """\

The last line of the log names the directory of the run's files; `fedstein report` and `fedstein predict` read it. After
an interruption, `flwr run . {where}--stream -c 'resume=true'` goes on with it.
"""


def untested() -> str | None:
    """A sentence if the installed version of Flower is not one that is tested."""
    found = tuple(int(part) for part in flwr.__version__.split(".")[:2])
    if FLOWER[0] <= found < FLOWER[1]:
        return None
    low, high = (".".join(map(str, version)) for version in FLOWER)
    return (
        f"Flower {flwr.__version__}: fedstein {__version__} is tested with {low} to below {high}; "
        f'pip install "flwr>={low},<{high}"'
    )


def write(directory: Path, sites: int | None) -> None:
    """Write a project: a simulation, or for this number of sites.

    Raises
    ------
    ConfigError
        The directory holds something, its name cannot be that of an app, or it cannot be written.
    """
    name = re.sub(r"[^a-z0-9]+", "-", directory.resolve().name.lower()).strip("-")
    if not name or name[0].isdigit():
        raise ConfigError(
            f"{directory}: the name of the directory must begin with a letter; it becomes that of the app"
        )
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigError(f"{directory} exists; name a new directory")
    clients = 10
    low, high = (".".join(map(str, version)) for version in FLOWER)
    app = _APP.format(
        name=name,
        low=low,
        high=high,
        version=__version__,
        sites="" if sites is None else _SITES.format(sites=sites),
        rounds=60 if sites is None else 20,
        data=_OF_SIMULATION.format(clients=clients) if sites is None else _OF_SITES,
    )
    part = _README_SIMULATION.format(clients=clients)
    if sites is not None:
        part = _README_SITES.format(sites=sites, last=sites - 1)
    readme = _README.format(name=name) + part + _README_END.format(where="" if sites is None else "lab ")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "pyproject.toml").write_text(app, encoding="utf-8")
        (directory / "README.md").write_text(readme, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{directory} cannot be written: {error.strerror}") from error
