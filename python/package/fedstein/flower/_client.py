"""The client app: a site that answers one message."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from .. import _fedstein
from ._network import SIMULATION, SITES
from ._records import carried, content

__all__ = ["app"]

logger = logging.getLogger("flwr")

app = ClientApp()


def _answer(message: Message, context: Context) -> Message:
    """The answer of the site of this node. What cannot be answered has the reason as its answer."""
    asked = carried(message)
    try:
        file, index = _site(message, context)
    except ValueError as error:
        answer = _fedstein.decline(asked, str(error))
    else:
        try:
            answer = _fedstein.answer(file, index, asked)
        except Exception as error:
            # Whoever reads the site's log may see its paths; the server may not.
            logger.error("%s", error)
            answer = _fedstein.decline(asked, "its own file or its rows cannot be used; its log says why")
    return Message(content(answer), reply_to=message)


def _site(message: Message, context: Context) -> tuple[Path, int | None]:
    """The file of this node's site, and its index.

    Raises
    ------
    ValueError
        There is none. The text is for the server.
    """
    node = context.node_config
    index = node.get("partition-id")
    if isinstance(index, bool) or not isinstance(index, int | None):
        raise ValueError("its partition-id is not a whole number")
    if SIMULATION in message.content.config_records:
        # Only where the server's machine is this one may the server name a file.
        ray = sys.modules.get("ray")
        if ray is None or not ray.is_initialized():
            raise ValueError(
                "the server asks for a simulation, and this is a SuperNode; "
                'set data.kind = "sites" in the app\'s config'
            )
        return Path(str(message.content[SIMULATION][SITES]), str(index), "site.toml"), index
    if "site" not in node:
        raise ValueError("it has no site: start it with --node-config 'partition-id=K site=\"/path/of/site.toml\"'")
    return Path(str(node["site"])), index


# A visit; scores on the site's own rows; and anything else: who the site is, what it holds, what was agreed, questions
# before a selection.
for _kind in (app.train, app.evaluate, app.query):
    _kind()(_answer)
