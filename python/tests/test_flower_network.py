"""What Flower carries, without Flower's processes: a grid in memory whose nodes answer as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("flwr")

from fedstein import ConfigError, _fedstein
from fedstein.flower._network import Network
from fedstein.flower._records import carried, content
from flwr.app import ConfigRecord, Error, Message, Metadata, MetricRecord, RecordDict
from flwr.superlink.grid import InMemoryGrid

Answer = Callable[["Node", Message], "RecordDict | Error | None"]


class Node:
    """A node of the grid, which says that it is a site."""

    def __init__(self, index: int, name: str = "") -> None:
        self.index, self.name = index, name or f"ward {index}"
        self.received: list[str] = []
        self.answer: Answer = identify


def identify(node: Node, message: Message) -> RecordDict | Error | None:
    """The answer to the question who a node is; none to anything else."""
    envelope = dict(message.content["fedstein"])
    asked = json.loads(str(envelope["content"]))["kind"]
    node.received.append(asked)
    if asked != "identify":
        return None
    envelope["content"] = json.dumps({"kind": "identity", "index": node.index, "name": node.name})
    return RecordDict({"fedstein": ConfigRecord(envelope)})


def reply(answer: RecordDict | Error, to: str, source: int) -> Any:
    metadata = SimpleNamespace(reply_to_message_id=to, src_node_id=source)
    is_error = isinstance(answer, Error)
    return SimpleNamespace(
        metadata=metadata, has_error=lambda: is_error, content=answer, error=answer if is_error else None
    )


class Grid:
    """Flower's grid as `Network` uses it."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = dict(enumerate(nodes, start=100))
        self.activated: dict[int, str] = {}
        self.replies: dict[str, Any] = {}
        self.pushes: list[int] = []
        # The nodes to which the grid takes no message, and whether it leaves such a message out of its list.
        self.refused: set[int] = set()
        self.leaves_out = False
        # The nodes whose answers are being uploaded, until the event; and the messages whose answers were handed over.
        self.uploads: dict[int, threading.Event] = {}
        self.taken: set[str] = set()
        self.pulls: list[list[str]] = []

    def get_nodes(self) -> Iterable[Any]:
        return [
            SimpleNamespace(node_id=node, last_activated_at=self.activated.get(node, "first")) for node in self.nodes
        ]

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        ids: list[str] = []
        for message in messages:
            metadata: Any = message.metadata
            node = metadata.dst_node_id
            self.pushes.append(node)
            # As Flower does, before it sends a message.
            metadata.message_id = f"message {len(self.pushes)}"
            if node in self.refused:
                # What a SuperLink of Flower 1.40 to 1.42 returns; the documentation has None.
                ids.extend([] if self.leaves_out else [""])
                continue
            ids.append(metadata.message_id)
            answer = self.nodes[node].answer(self.nodes[node], message)
            if answer is not None:
                self.replies[ids[-1]] = reply(answer, ids[-1], node)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Any]:
        ids = list(message_ids)
        self.pulls.append(ids)
        # As Flower does, of an answer that it has handed over, also where this call waits for its upload.
        gone = Error(code=3, reason="no such message")
        errors = [reply(gone, asked, 1) for asked in ids if asked in self.taken]
        found = [self.replies.pop(asked) for asked in ids if asked in self.replies]
        self.taken.update(answer.metadata.reply_to_message_id for answer in found)
        for answer in found:
            if (upload := self.uploads.get(answer.metadata.src_node_id)) is not None:
                assert upload.wait(60)
        return found + errors


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> Iterable[None]:
    """A clock that goes on by a second with every look, and no sleep."""
    now = [0.0]

    def monotonic() -> float:
        now[0] += 1.0
        return now[0]

    def message(records: RecordDict, node: int, kind: str, *, ttl: float, group_id: str) -> Any:
        # Flower's own can be made in a run only.
        assert kind in ("train", "evaluate", "query") and ttl > 0
        return SimpleNamespace(content=records, metadata=SimpleNamespace(dst_node_id=node, group_id=group_id))

    monkeypatch.setattr("fedstein.flower._network.Message", message)
    clock = SimpleNamespace(monotonic=monotonic, sleep=lambda _: None)
    monkeypatch.setattr("fedstein.flower._network.time", clock)
    return ()


def network(grid: Grid, sites: int) -> Network:
    there: Any = grid
    return Network(there, sites, poll=0.5, rejoin=5.0, ttl=60.0)


def question() -> Any:
    """Any message to a site: here the one that asks who it is, under another kind."""
    envelope, numbers, arrays, kind, turn = _fedstein.ask_site()
    return {**envelope, "content": '{"kind":"describe"}'}, numbers, arrays, kind, turn


def arrivals(net: Network, looks: int) -> list[Any]:
    return [arrival for _ in range(looks) for arrival in net.receive()]


def test_sites_are_found_by_what_their_nodes_say_in_whatever_order_they_come() -> None:
    grid = Grid(Node(1), Node(0), Node(7), Node(2))
    net = network(grid, 3)
    assert net.muster(60) == ["ward 0", "ward 1", "ward 2"]
    assert sorted(grid.pushes) == [100, 101, 102, 103], "every node is asked once"
    net.send([(0, question()), (1, question())])
    assert grid.nodes[101].received == ["identify", "describe"]
    assert grid.nodes[100].received == ["identify", "describe"]


def test_missing_sites_are_named_with_what_a_node_says_that_does_not_take_part() -> None:
    mute, other = Node(1), Node(1)
    mute.answer = lambda node, message: None
    other.answer = lambda node, message: Error(code=1, reason="no module named fedstein")
    with pytest.raises(ConfigError, match="1 of 3 sites are here after 60 s; missing: partition-id 1, 2") as raised:
        network(Grid(Node(0), mute, other), 3).muster(60)
    assert "no module named fedstein" in str(raised.value)


def test_a_site_without_a_file_says_so() -> None:
    node = Node(0)
    node.answer = lambda node, message: content(_fedstein.decline(carried(message), "it has no site: start it with …"))
    with pytest.raises(ConfigError, match="a SuperNode answers: it has no site"):
        network(Grid(node), 1).muster(30)


def test_a_node_of_another_version_is_named_with_both() -> None:
    node = Node(0)

    def of_old(node: Node, message: Message) -> RecordDict:
        answer = identify(node, message)
        assert isinstance(answer, RecordDict)
        answer["fedstein"]["protocol"] = 1
        return answer

    node.answer = of_old
    with pytest.raises(ConfigError, match=r"speaks protocol 1 \(fedstein .*this side protocol"):
        network(Grid(node), 1).muster(30)


def test_two_nodes_of_one_site_end_the_start() -> None:
    with pytest.raises(ConfigError, match="partition-id 0 is claimed by two SuperNodes"):
        network(Grid(Node(0), Node(0), Node(1)), 2).muster(60)


def test_an_earlier_node_of_a_site_that_takes_its_time_to_answer_again_ends_the_start() -> None:
    slow = Node(0)
    answers = iter((identify, lambda node, message: None, identify))
    slow.answer = lambda node, message: next(answers)(node, message)
    with pytest.raises(ConfigError, match="partition-id 0 is claimed by two SuperNodes"):
        network(Grid(slow, Node(0), Node(1)), 2).muster(60)


def test_a_node_that_is_started_again_while_others_are_waited_for_takes_its_place() -> None:
    killed, again = Node(0), Node(0)
    grid = Grid(killed)

    def once(node: Node, message: Message) -> RecordDict | Error | None:
        # Without a key of its own it gets another number, and Flower still lists the first one.
        node.answer = lambda node, message: None
        grid.nodes[200] = again
        return identify(node, message)

    def then(node: Node, message: Message) -> RecordDict | Error | None:
        grid.nodes.setdefault(300, Node(1))
        return identify(node, message)

    killed.answer, again.answer = once, then
    net = network(grid, 2)
    assert net.muster(60) == ["ward 0", "ward 1"]
    assert grid.pushes.count(100) > 1, "the first one is asked again"
    net.send([(0, question()), (1, question())])
    assert arrivals(net, 20) == []
    assert again.received == grid.nodes[300].received == ["identify", "describe"]


def test_a_message_waits_for_the_node_of_its_site_and_not_for_ever() -> None:
    grid = Grid(Node(0), Node(1))
    net = network(grid, 2)
    net.muster(60)
    gone = grid.nodes.pop(101)
    net.send([(1, question())])
    lost = arrivals(net, 20)
    assert lost == [(1, None, "none of the SuperNodes that are connected is this site")]
    net.send([(1, question())])
    grid.nodes[200] = Node(1)
    assert arrivals(net, 20) == []
    assert grid.nodes[200].received == ["identify", "describe"] and gone.received == ["identify"]


def test_a_site_that_was_started_again_gets_what_it_has_not_answered_reported_as_lost() -> None:
    grid = Grid(Node(0), Node(1))
    net = network(grid, 2)
    net.muster(60)
    net.send([(1, question())])
    # Flower still lists the earlier node, which does not answer any more.
    grid.nodes[200] = Node(1)
    assert arrivals(net, 20) == [(1, None, "its SuperNode was started again")]
    net.send([(1, question())])
    assert grid.nodes[200].received == ["identify", "describe"]


def test_a_node_with_a_key_of_its_own_keeps_its_number_when_it_is_started_again() -> None:
    grid = Grid(Node(0))
    net = network(grid, 1)
    net.muster(60)
    net.send([(0, question())])
    grid.activated[100] = "again"
    assert [(index, message) for index, message, _ in arrivals(net, 20)] == [(0, None)]
    net.send([(0, question())])
    assert grid.nodes[100].received == ["identify", "describe", "identify", "describe"]


def test_a_node_that_flower_loses_for_a_while_is_found_again() -> None:
    grid = Grid(Node(0))
    net = network(grid, 1)
    net.muster(60)
    node = grid.nodes.pop(100)
    net.send([(0, question())])
    grid.nodes[100] = node
    assert arrivals(net, 20) == []
    assert node.received == ["identify", "identify", "describe"]


def test_of_two_nodes_of_one_site_the_later_gets_the_messages() -> None:
    grid = Grid(Node(0))
    net = network(grid, 1)
    net.muster(60)
    grid.nodes[200] = Node(0)
    net.send([(0, question())])
    assert len(arrivals(net, 60)) == 1
    net.send([(0, question())])
    assert arrivals(net, 60) == []
    assert grid.nodes[200].received == ["identify", "describe"]


def test_another_site_with_the_index_of_one_that_is_there_does_not_take_its_place() -> None:
    grid = Grid(Node(0))
    net = network(grid, 1)
    net.muster(60)
    net.send([(0, question())])
    grid.nodes[200] = Node(0, "another ward")
    assert arrivals(net, 20) == []
    assert grid.nodes[200].received == ["identify"]


def test_errors_and_answers_that_are_none_are_reported_with_the_reason() -> None:
    grid = Grid(Node(0))
    net = network(grid, 1)
    net.muster(60)
    answers: list[tuple[RecordDict | Error, str]] = [
        (Error(code=5, reason="Node\nis unavailable"), "Node is unavailable"),
        (Error(code=8), "error 8"),
        (RecordDict(), "the message is not one of fedstein"),
        (RecordDict({"fedstein": ConfigRecord({"protocol": [1, 2]})}), "the message is not one of fedstein"),
        (
            RecordDict({"fedstein": ConfigRecord({"protocol": 4}), "numbers": MetricRecord({"a": [1.0]})}),
            "the message has metrics that are not single numbers",
        ),
    ]
    for answer, reason in answers:
        grid.nodes[100].answer = lambda node, message, answer=answer: answer
        net.send([(0, question())])
        assert arrivals(net, 3) == [(0, None, reason)]


@pytest.mark.parametrize("leaves_out", [False, True])
@pytest.mark.parametrize("refused", [{100}, {101}, {100, 102}, {100, 101, 102}])
def test_every_message_that_flower_does_not_take_is_reported(refused: set[int], leaves_out: bool) -> None:
    grid = Grid(Node(0), Node(1), Node(2))
    net = network(grid, 3)
    net.muster(60)
    for number, node in grid.nodes.items():
        node.answer = lambda node, message, number=number: Error(code=1, reason=f"of node {number}")
    grid.refused, grid.leaves_out = refused, leaves_out
    net.send([(index, question()) for index in range(3)])
    reasons = ["Flower did not take the message" if node in refused else f"of node {node}" for node in grid.nodes]
    assert sorted(arrivals(net, 3)) == [(index, None, reason) for index, reason in enumerate(reasons)]


def test_flowers_grid_of_a_simulation_leaves_out_what_it_does_not_take_and_each_message_has_its_own_number() -> None:
    def store(message: Any) -> str | None:
        number: str = message.metadata.message_id
        return None if message.metadata.dst_node_id in (6, 8) else number

    state: Any = SimpleNamespace(store_message_ins=store)
    factory: Any = SimpleNamespace(state=lambda: state)
    net = Network(InMemoryGrid(factory), 1, poll=0.5, rejoin=5.0, ttl=60.0)
    messages: list[Any] = [
        SimpleNamespace(
            metadata=Metadata(
                run_id=1,
                message_id="",
                src_node_id=1,
                dst_node_id=node,
                reply_to_message_id="",
                group_id="1",
                created_at=0.0,
                ttl=60.0,
                message_type="query",
            )
        )
        for node in (6, 7, 8, 9)
    ]
    for message in messages:
        message.metadata.delivered_at = ""
    pushed = net._pushed(messages)
    numbers = [message.metadata.message_id for message in messages]
    assert pushed == [None, numbers[1], None, numbers[3]] and len(set(numbers)) == 4


def test_an_answer_to_an_earlier_message_is_not_taken_for_one_to_a_later() -> None:
    grid = Grid(Node(0))
    net = network(grid, 1)
    net.muster(60)
    grid.nodes[100].answer = lambda node, message: None
    net.send([(0, question())])
    net.send([(0, question())])
    first, second = [f"message {number}" for number in (len(grid.pushes) - 1, len(grid.pushes))]
    late = content(_fedstein.decline(carried(reply(content(question()), "", 0)), "late"))
    grid.replies[first] = reply(late, first, 100)
    grid.replies["message of nobody"] = reply(late, "message of nobody", 100)
    assert [index for index, message, _ in arrivals(net, 3) if message is not None] == [0]
    grid.replies[second] = reply(late, second, 100)
    assert len(arrivals(net, 3)) == 1


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look for answers goes on beside the next one almost at once."""
    monkeypatch.setattr("fedstein.flower._network.PATIENCE", 0.05)


def failing(reason: str) -> Answer:
    return lambda node, message: Error(code=1, reason=reason)


def until(net: Network, number: int) -> list[Any]:
    """So many arrivals, which another thread may hand over."""
    found: list[Any] = []
    for _ in range(1000):
        found += net.receive()
        if len(found) >= number:
            return found
        threading.Event().wait(0.01)
    raise AssertionError(f"{found} after 10 s")


def silent(node: Node, message: Message) -> None:
    return None


@pytest.mark.usefixtures("impatient")
def test_other_sites_are_heard_while_one_uploads_its_answer() -> None:
    grid = Grid(Node(0), Node(1), Node(2))
    net = network(grid, 3)
    net.muster(60)
    upload = grid.uploads[100] = threading.Event()
    for node, answer in ((100, failing("slow")), (101, failing("same look")), (102, silent)):
        grid.nodes[node].answer = answer
    net.send([(index, question()) for index in range(3)])
    last = f"message {len(grid.pushes)}"
    assert arrivals(net, 5) == []
    grid.replies[last] = reply(Error(code=1, reason="later look"), last, 102)
    assert arrivals(net, 2) == [(2, None, "later look")]
    # A message to another site goes out, and its answer comes, before the upload is complete.
    grid.nodes[102].answer = failing("next")
    net.send([(2, question())])
    assert arrivals(net, 2) == [(2, None, "next")]
    # Nobody asks for an answer again that a look is known to have.
    assert grid.pulls[-1] == [f"message {len(grid.pushes)}"]
    upload.set()
    assert sorted(until(net, 2)) == [(0, None, "slow"), (1, None, "same look")]
    assert arrivals(net, 5) == [] and net._open == {} and net._pulls == []


@pytest.mark.usefixtures("impatient")
def test_two_uploads_at_once_are_waited_for_beside_each_other() -> None:
    grid = Grid(Node(0), Node(1), Node(2))
    net = network(grid, 3)
    net.muster(60)
    for node in grid.nodes.values():
        node.answer = silent
    net.send([(index, question()) for index in range(3)])
    ids = [f"message {len(grid.pushes) - 2 + index}" for index in range(3)]

    def answers(index: int) -> None:
        grid.replies[ids[index]] = reply(Error(code=1, reason=f"of {index}"), ids[index], 100 + index)

    for index in (0, 1):
        grid.uploads[100 + index] = threading.Event()
        answers(index)
        assert arrivals(net, 2) == []
    answers(2)
    assert arrivals(net, 2) == [(2, None, "of 2")]
    # The one that began last ends first.
    for index in (1, 0):
        grid.uploads[100 + index].set()
        assert until(net, 1) == [(index, None, f"of {index}")]


@pytest.mark.usefixtures("impatient")
def test_an_upload_that_breaks_off_is_reported_once_with_the_reason_and_the_answer_to_the_next_request_counts() -> None:
    grid = Grid(Node(0))
    net = network(grid, 1)
    net.muster(60)
    upload = grid.uploads[100] = threading.Event()
    # What Flower makes of it has the number of an answer that is not there.
    grid.nodes[100].answer = lambda node, message: Error(code=3, reason="the upload was not completed")
    net.send([(0, question())])
    assert arrivals(net, 5) == []
    upload.set()
    assert until(net, 1) == [(0, None, "the upload was not completed")]
    grid.nodes[100].answer = failing("of the second")
    net.send([(0, question())])
    assert until(net, 1) == [(0, None, "of the second")]


@pytest.mark.usefixtures("impatient")
def test_an_answer_that_a_look_has_lost_is_asked_for_again_when_it_has_ended() -> None:
    grid = Grid(Node(0))
    net = network(grid, 1)
    net.muster(60)
    upload = threading.Event()
    grid.nodes[100].answer = failing("never heard")
    pull = grid.pull_messages

    def too_large(message_ids: Iterable[str]) -> Iterable[Any]:
        # Flower returns nothing where the answers together are too large.
        grid.pull_messages = pull  # type: ignore[method-assign]
        pull(message_ids)
        assert upload.wait(60)
        return []

    grid.pull_messages = too_large  # type: ignore[method-assign]
    net.send([(0, question())])
    assert arrivals(net, 5) == []
    upload.set()
    assert until(net, 1) == [(0, None, "no such message")]


@pytest.mark.usefixtures("impatient")
def test_a_superlink_that_does_not_answer_is_not_asked_by_ever_more_threads() -> None:
    grid = Grid(Node(0))
    net = network(grid, 1)
    net.muster(60)
    back = threading.Event()
    asked: list[Any] = []

    def waits(message_ids: Iterable[str]) -> Iterable[Any]:
        asked.append(message_ids)
        assert back.wait(60)
        return []

    grid.pull_messages = waits  # type: ignore[method-assign]
    grid.nodes[100].answer = silent
    net.send([(0, question())])
    assert arrivals(net, 30) == []
    back.set()
    assert len(asked) == 16


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), SystemExit(1), RuntimeError("the run was stopped")])
def test_what_flower_raises_in_a_look_is_raised(raised: BaseException) -> None:
    grid = Grid(Node(0))
    net = network(grid, 1)
    net.muster(60)

    def stopped(message_ids: Iterable[str]) -> Iterable[Any]:
        raise raised

    grid.pull_messages = stopped  # type: ignore[method-assign]
    grid.nodes[100].answer = silent
    net.send([(0, question())])
    with pytest.raises(type(raised)) as caught:
        arrivals(net, 3)
    assert caught.value is raised
