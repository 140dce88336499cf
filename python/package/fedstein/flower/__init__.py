"""Federated Bayesian learning over Flower: the apps of a project, and a strategy for own ServerApps.

`python -m fedstein.flower new DIR` writes a project that `flwr run` runs. Flower carries the messages; the rounds,
their repetition, quarantine, checkpoints and reports are fedstein's. `docs/flower.md` of the repository is the guide.
"""

from __future__ import annotations

from importlib.util import find_spec as _find

if _find("flwr") is None:
    raise ImportError('fedstein.flower needs Flower: pip install "./python[flower]" in a checkout of fedstein')

from . import _client, _server
from ._server import FedsteinStrategy

__all__ = ["FedsteinStrategy", "client_app", "server_app"]

# Flower finds an app by parsing this file: it must be assigned here.
server_app = _server.app
client_app = _client.app
