"""Messages between a server and its sites over Flower's grid."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from .. import _fedstein
from .._fedstein import ConfigError
from ._records import Carried, Outgoing, carried, content

__all__ = ["SIMULATION", "Network"]

logger = logging.getLogger("flwr")

# The record that names the sites' files of a simulation, and its key.
SIMULATION, SITES = "simulation", "sites"
# The type of Flower's message for each kind of request; a query for any other message.
TYPES = {"training": MessageType.TRAIN, "scores": MessageType.EVALUATE}
# Seconds between two looks at the list of nodes, and until a node that gave no answer is asked again who it is.
LOOK, AGAIN = 2.0, 20.0
# Seconds for which Flower may list a node that is gone.
LISTED = 60.0
# Seconds until a look for answers goes on beside the next one, and the number of looks that may do so.
PATIENCE, LOOKS = 1.0, 16

Arrival = tuple[int, Carried | None, str]
# A node in one of its lives: its id, and when it was last started, as far as Flower tells.
Life = tuple[int, str]


@dataclass
class _Site:
    """A site, and where it is."""

    name: str = ""
    life: Life | None = None
    # Messages that wait for a node, each with the time since when.
    waiting: list[tuple[Outgoing, float]] = field(default_factory=list)


class _Pull(threading.Thread):
    """A call of Flower's `pull_messages`, which waits for the end of an upload that has begun.

    Which answers it has is known at its end. But who asks for one of them meanwhile is told that there is no such
    message.

    Parameters
    ----------
    grid : Grid
        Flower's grid, whose calls may come from several threads at once.
    ids : iterable of str
        The messages whose answers are asked for.
    """

    def __init__(self, grid: Grid, ids: Iterable[str]) -> None:
        # An upload may go on when the run has ended.
        super().__init__(name="fedstein-pull", daemon=True)
        self._grid = grid
        self.ids = tuple(ids)
        # Those whose answers it is known to have.
        self.held: set[str] = set()
        self.replies: list[Message] = []
        self.raised: BaseException | None = None

    def run(self) -> None:
        try:
            self.replies = list(self._grid.pull_messages(self.ids))
        except BaseException as error:
            self.raised = error


class Network:
    """Sends messages to sites by their index, and collects what they answer.

    A node is asked which site it is. A site whose node is gone is waited for; if another node says that it is this
    site, messages go there. A lost message is reported as such, so that the run may send it again.

    Parameters
    ----------
    grid : Grid
        Flower's grid.
    sites : int
        Number of sites; they are `partition-id` 0 to `sites` - 1.
    poll : float
        Seconds between two looks for answers.
    rejoin : float
        Seconds for which a message waits for the node of its site.
    ttl : float
        Seconds for which Flower keeps a message and its answer.
    simulation : str
        The directory of the sites' files in a simulation, which the nodes of a simulation use; else "".
    """

    def __init__(self, grid: Grid, sites: int, *, poll: float, rejoin: float, ttl: float, simulation: str = "") -> None:
        self._grid, self._poll, self._rejoin, self._ttl = grid, poll, rejoin, ttl
        self._simulation = simulation
        self._sites = [_Site() for _ in range(sites)]
        # The messages that are not answered yet: to a site, or to a node that is asked who it is.
        self._open: dict[str, int] = {}
        self._asked: dict[str, Life] = {}
        # The lives that have said which site they are, and when each was last asked.
        self._known: dict[Life, int] = {}
        self._times: dict[Life, float] = {}
        self._reasons: dict[Life, str] = {}
        # Before the start: the lives whose site another node has claimed since. They are asked again.
        self._earlier: set[Life] = set()
        self._arrivals: list[Arrival] = []
        # The looks for answers that go on, from the first one.
        self._pulls: list[_Pull] = []
        self._looked = self._polled = -float("inf")
        self._started = False

    def muster(self, seconds: float) -> list[str]:
        """Wait until a node is there for every site, and return what the sites are called in messages.

        Raises
        ------
        ConfigError
            They are not all there in time, or two nodes that are both there say that they are the same site.
        """
        end = time.monotonic() + seconds
        told = 0.0
        while missing := [index for index, site in enumerate(self._sites) if site.life is None]:
            if time.monotonic() > end:
                here = len(self._sites) - len(missing)
                reasons = "".join(f"; a SuperNode answers: {reason}" for reason in set(self._reasons.values()))
                raise ConfigError(
                    f"{here} of {len(self._sites)} sites are here after {seconds:g} s; missing: partition-id "
                    f"{', '.join(map(str, missing))}{reasons}"
                )
            if time.monotonic() > told + 10:
                told = time.monotonic()
                logger.info("waiting for sites: partition-id %s", ", ".join(map(str, missing)))
            self._look()
            self.receive()
            time.sleep(min(self._poll, 0.2))
        # Whoever is asked still may say that it is a site twice. An earlier node of a site may do so until
        # Flower notices that it is gone.
        begun = time.monotonic()
        while self._asked or self._earlier:
            if time.monotonic() > begun + (LISTED if self._earlier else 5.0):
                break
            if self._earlier:
                self._look()
            self.receive()
            time.sleep(min(self._poll, 0.2))
        self._earlier.clear()
        self._started = True
        return [site.name for site in self._sites]

    def send(self, messages: Sequence[tuple[int, Outgoing]]) -> None:
        """Send messages to sites. One whose node is away waits for it."""
        online = self._online()
        ready = []
        for index, message in messages:
            site = self._sites[index]
            if site.life is not None and site.life not in online:
                self._lose(index, "its SuperNode is not connected any more")
            if site.life is None:
                site.waiting.append((message, time.monotonic()))
            else:
                ready.append((index, site.life, message))
        self._push(ready)

    def receive(self) -> list[Arrival]:
        """What has arrived: the site, and its message, or why it cannot be reached."""
        now = time.monotonic()
        if now < self._polled + self._poll:
            return []
        self._polled = now
        self._pull()
        if self._started and now > self._looked + LOOK and (self._open or any(site.waiting for site in self._sites)):
            self._look()
        for index, site in enumerate(self._sites):
            if site.waiting and site.life is not None:
                ready = [(index, site.life, message) for message, _ in site.waiting]
                site.waiting = []
                self._push(ready)
            elif site.waiting and now > site.waiting[0][1] + self._rejoin:
                site.waiting = []
                self._arrivals.append((index, None, "none of the SuperNodes that are connected is this site"))
        arrivals, self._arrivals = self._arrivals, []
        return arrivals

    def _pull(self) -> None:
        """Look for answers, also beside a look that waits for an upload."""
        held = {message_id for pull in self._pulls for message_id in pull.held}
        ids = [message_id for message_id in (*self._open, *self._asked) if message_id not in held]
        if ids and len(self._pulls) < LOOKS:
            pull = _Pull(self._grid, ids)
            self._pulls.append(pull)
            pull.start()
            pull.join(PATIENCE)
        ended = [pull for pull in self._pulls if not pull.is_alive()]
        self._pulls = [pull for pull in self._pulls if pull not in ended]
        for pull in ended:
            if pull.raised is not None:
                raise pull.raised
        # What one look has, another may say that there is not.
        for reply in sorted((reply for pull in ended for reply in pull.replies), key=lambda reply: reply.has_error()):
            answered = reply.metadata.reply_to_message_id
            others = [other for other in self._pulls if answered in other.ids]
            if others and reply.has_error() and reply.error.code == ErrorCode.MESSAGE_UNAVAILABLE:
                # One of them has the answer; or it is asked for again when they have ended.
                for other in others:
                    other.held.add(answered)
            else:
                self._arrived(reply)

    def _online(self) -> dict[Life, None]:
        """The nodes that Flower has, in its order."""
        nodes = self._grid.get_nodes() if hasattr(self._grid, "get_nodes") else ()
        lives = [(node.node_id, str(getattr(node, "last_activated_at", ""))) for node in nodes]
        return dict.fromkeys(lives or [(node, "") for node in self._grid.get_node_ids()])

    def _look(self) -> None:
        """Ask new nodes who they are, and notice those that are gone."""
        now = time.monotonic()
        if now < self._looked + min(LOOK, 1.0):
            return
        self._looked = now
        online = self._online()
        for index, site in enumerate(self._sites):
            if site.life is not None and site.life not in online:
                self._lose(index, "its SuperNode is not connected any more")
        self._earlier.intersection_update(online)
        question = _fedstein.ask_site()
        new = [life for life in online if life not in self._known and now > self._times.get(life, -AGAIN) + AGAIN]
        messages = [self._message(life, question) for life in new]
        for life, message_id in zip(new, self._pushed(messages)):
            self._times[life] = now
            if message_id is not None:
                self._asked[message_id] = life

    def _lose(self, index: int, reason: str) -> None:
        """The node of a site is gone, and what was sent there with it."""
        logger.warning("site %d: %s", index, reason)
        life, self._sites[index].life = self._sites[index].life, None
        if life is not None:
            # It may come back.
            self._known.pop(life, None)
            self._times.pop(life, None)
        lost = [message_id for message_id, of in self._open.items() if of == index]
        for message_id in lost:
            del self._open[message_id]
        if lost:
            self._arrivals.append((index, None, reason))

    def _message(self, life: Life, message: Outgoing) -> Message:
        records: RecordDict = content(message)
        if self._simulation:
            records[SIMULATION] = ConfigRecord({SITES: self._simulation})
        kind, turn = message[3], message[4]
        return Message(records, life[0], TYPES.get(kind, MessageType.QUERY), ttl=self._ttl, group_id=str(turn))

    def _pushed(self, messages: list[Message]) -> list[str | None]:
        """The number that Flower gives each message; None for one that it does not take."""
        if not messages:
            return []
        ids = list(self._grid.push_messages(messages))
        if len(ids) == len(messages):
            # Flower has an empty text in the place of a message that it does not take.
            return [message_id or None for message_id in ids]
        # The grid of a simulation leaves such a message out of its list, and Flower returns nothing at all where the
        # messages together are too large. Either way the others have the numbers that they were given.
        return [message_id if message_id in ids else None for message_id in (of.metadata.message_id for of in messages)]

    def _push(self, messages: list[tuple[int, Life, Outgoing]]) -> None:
        ids = self._pushed([self._message(life, message) for _, life, message in messages])
        for (index, _, _), message_id in zip(messages, ids):
            if message_id is None:
                self._arrivals.append((index, None, "Flower did not take the message"))
            else:
                self._open[message_id] = index

    def _arrived(self, reply: Message) -> None:
        # The node that an error comes from need not be the one that it is about.
        answered = reply.metadata.reply_to_message_id
        if answered in self._asked:
            self._identified(self._asked.pop(answered), reply)
            return
        index = self._open.pop(answered, None)
        if index is None:
            return
        if reply.has_error():
            self._arrivals.append((index, None, _reason(reply)))
            return
        try:
            self._arrivals.append((index, carried(reply), ""))
        except ValueError as error:
            self._arrivals.append((index, None, str(error)))

    def _identified(self, life: Life, reply: Message) -> None:
        """A node has said which site it is."""
        is_earlier = life in self._earlier
        self._earlier.discard(life)
        try:
            if reply.has_error():
                raise ValueError(_reason(reply))
            index, name = _fedstein.site_answers(carried(reply))
        except (ValueError, RuntimeError) as error:
            if self._reasons.get(life) != str(error):
                logger.warning("a SuperNode (%d) does not take part: %s", life[0], error)
            self._reasons[life] = str(error)
            return
        self._known[life] = index
        if index >= len(self._sites):
            logger.warning("%s (%d) does not take part: the run has %d sites", name, index, len(self._sites))
            return
        site, before = self._sites[index], self._sites[index].life
        if self._started and name != site.name:
            logger.warning("%s (%d) does not take part: site %d is %s", name, life[0], index, site.name)
            return
        if before is not None and before[0] != life[0]:
            if is_earlier:
                raise ConfigError(
                    f"partition-id {index} is claimed by two SuperNodes; give each its own in --node-config and in "
                    "`index` of its site.toml"
                )
            # Flower may take a minute to notice that the earlier node is gone.
            if self._started:
                self._lose(index, "its SuperNode was started again")
                # It is not asked again.
                self._known[before] = index
            else:
                self._lose(index, "a second SuperNode says that it is this site; the first one is asked again")
                self._earlier.add(before)
        logger.info("site %d is %s", index, name)
        site.life, site.name = life, name


def _reason(reply: Message) -> str:
    """Why there is no answer, in Flower's words."""
    return " ".join(str(reply.error.reason or f"error {reply.error.code}").split())[:200]
