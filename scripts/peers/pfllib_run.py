"""One run of PFLlib in a process of its own: `compare.py` and `time_to_quality.py` start it.

    python pfllib_run.py KEYS.json OUT.json

KEYS.json names the checkout of PFLlib, the folder that holds `dataset/NAME/` in PFLlib's form, and the settings.
Servers, clients and their training are PFLlib's own classes; nothing is written into the checkout. Changed from
outside are:

- the network, one of this file (784-100-10, relu) that starts as fedstein's does: PFLlib's `DNN` ends in a log-softmax,
  which comes to lie below the head where the head is split off (FedAvg, FedPer);
- the seeds, which PFLlib sets to 0 in every client;
- the evaluation: the same scores as fedstein's, outside the seconds that are counted; PFLlib's own is made at the end;
- with `loader` "memory" or "own", the minibatches of a visit: their number is fixed, as it is for fedstein. "epoch"
  leaves PFLlib's loader as it is;
- with `aligned`, pFedMe's weights of the clients (equal) and its weight decay (none).
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

Rows = tuple[torch.Tensor, torch.Tensor]
# algorithm -> module of the server, its class, and the method that evaluates.
SERVERS = {
    "FedAvg": ("serveravg", "FedAvg", "evaluate"),
    "FedProx": ("serverprox", "FedProx", "evaluate"),
    "FedPer": ("serverper", "FedPer", "evaluate"),
    "pFedMe": ("serverpFedMe", "pFedMe", "evaluate_personalized"),
    "SCAFFOLD": ("serverscaffold", "SCAFFOLD", "evaluate"),
}
HIDDEN, CLASSES = 100, 10


class Network(torch.nn.Module):
    """784-100-10 with relu; weights N(0, 1/(fan-in + 1)), biases 0."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = torch.nn.Linear(784, HIDDEN)
        self.fc = torch.nn.Linear(HIDDEN, CLASSES)
        for layer in (self.fc1, self.fc):
            torch.nn.init.normal_(layer.weight, std=(layer.in_features + 1) ** -0.5)
            torch.nn.init.zeros_(layer.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(torch.relu(self.fc1(torch.flatten(x, 1))))


class Steps:
    """So many minibatches a visit, from memory: a permutation an epoch, which goes on over visits and epochs' ends."""

    def __init__(self, rows: Rows, batch: int, steps: int, seed: int) -> None:
        self.x, self.y = rows
        self.batch, self.steps = min(batch, len(self.x)), steps
        self.order = torch.empty(0, dtype=torch.int64)
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Rows]:
        for _ in range(self.steps):
            while len(self.order) < self.batch:
                self.order = torch.cat([self.order, torch.randperm(len(self.x), generator=self.generator)])
            now, self.order = self.order[: self.batch], self.order[self.batch :]
            yield self.x[now], self.y[now]


class Cut:
    """So many minibatches a visit of a loader, which begins anew where it ends."""

    def __init__(self, loader: DataLoader, steps: int) -> None:
        self.loader, self.steps = loader, steps

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Rows]:
        left = self.steps
        while left:
            for batch in self.loader:
                yield batch
                left -= 1
                if not left:
                    return


def sums(model: torch.nn.Module, rows: Rows) -> tuple[int, float, int]:
    """Correct rows, sum of NLL, rows."""
    with torch.no_grad():
        logits = model(rows[0])
    nll = torch.nn.functional.cross_entropy(logits, rows[1], reduction="sum")
    return int((logits.argmax(1) == rows[1]).sum()), float(nll), len(rows[0])


def pooled(parts: list[tuple[int, float, int]]) -> dict[str, float]:
    correct, nll, count = (sum(part) for part in zip(*parts))
    return {"accuracy": correct / count, "nll": nll / count}


def table(path: Path) -> Rows:
    with np.load(path, allow_pickle=True) as file:
        data = file["data"].tolist()
    return torch.from_numpy(data["x"]), torch.from_numpy(data["y"])


class Ended(Exception):
    """The last evaluation has been made. PFLlib would train for one more round, which nothing evaluates."""


def main(keys: dict[str, Any]) -> dict[str, Any]:
    torch.set_num_threads(1)
    sys.path.insert(0, str(Path(keys["pfllib"]) / "system"))
    data = Path(keys["data"]) / "dataset" / keys["name"]
    # PFLlib reads ../dataset/NAME.
    (Path(keys["data"]) / "system").mkdir(exist_ok=True)
    os.chdir(Path(keys["data"]) / "system")
    module, kind, evaluates = SERVERS[keys["algorithm"]]
    server_type = getattr(__import__(f"flcore.servers.{module}", fromlist=[kind]), kind)
    clients, steps, seed = int(keys["clients"]), int(keys["steps"]), int(keys["seed"])

    torch.manual_seed(seed)
    model: torch.nn.Module = Network()
    if keys["algorithm"] == "FedPer":
        from flcore.trainmodel.models import BaseHeadSplit

        head, model.fc = model.fc, torch.nn.Identity()
        model = BaseHeadSplit(model, head)
    args = SimpleNamespace(
        # The keys that are the comparison's.
        algorithm=keys["algorithm"],
        dataset=keys["name"],
        model=model,
        num_clients=clients,
        global_rounds=int(keys["rounds"]),
        local_epochs=int(keys["epochs"]),
        batch_size=int(keys["batch"]),
        local_learning_rate=float(keys["lr"]),
        mu=float(keys.get("mu", 0.0)),
        lamda=float(keys.get("lamda", 0.0)),
        K=int(keys.get("inner_steps", 1)),
        p_learning_rate=float(keys.get("inner_lr", 0.0)),
        # PFLlib's own default of beta is 0, with which the shared parameters stay at their start.
        beta=1.0,
        server_learning_rate=1.0,
        # All else as in main.py.
        device="cpu",
        num_classes=CLASSES,
        join_ratio=1.0,
        random_join_ratio=False,
        learning_rate_decay=False,
        learning_rate_decay_gamma=0.99,
        eval_gap=1,
        client_drop_rate=0.0,
        train_slow_rate=0.0,
        send_slow_rate=0.0,
        time_select=False,
        time_threthold=10000,
        few_shot=0,
        goal="test",
        save_folder_name="items",
        top_cnt=100,
        auto_break=False,
        dlg_eval=False,
        dlg_gap=100,
        batch_num_per_client=2,
        num_new_clients=0,
        fine_tuning_epoch_new=0,
    )
    began = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        server = server_type(args, 0)
    built = time.process_time() - began

    loader = keys["loader"]
    for client in server.clients:
        if loader == "memory":
            rows = table(data / "train" / f"{client.id}.npz")
            batches = Steps(rows, args.batch_size, steps, seed * 1000 + client.id)
            client.load_train_data = lambda batches=batches: batches
        elif loader == "own":
            client.load_train_data = own_loader(client, steps)
        if keys["algorithm"] == "pFedMe":
            keep_personal(client)
            if keys.get("aligned"):
                client.train_samples = 1
                for group in client.optimizer.param_groups:
                    group["mu"] = 0.0
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)

    tests = [table(data / "test" / f"{client}.npz") for client in range(clients)] if keys["personal"] else []
    everything = table(data / "all.npz")
    found: list[dict[str, float]] = []
    used, since, turn = 0.0, time.process_time(), 0
    published = getattr(server, evaluates)

    def evaluate() -> None:
        nonlocal used, since, turn
        used += time.process_time() - since
        last = turn == args.global_rounds
        if turn and (last or turn % int(keys["every"]) == 0):
            row: dict[str, float] = {"round": turn, "cpu_seconds": used}
            if tests:
                row |= {f"personal_{name}": value for name, value in pooled(personal(server, tests)).items()}
            if keys["algorithm"] != "FedPer":
                row |= pooled([sums(server.global_model, everything)])
            found.append(row)
            if last or row.get("nll", 9.0) <= float(keys.get("until_nll", 0.0)):
                raise Ended
        turn += 1
        since = time.process_time()

    setattr(server, evaluates, evaluate)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Ended):
        server.train()
    result = {"rounds": found, "built_cpu_seconds": built, "torch": torch.__version__, "keys": keys}
    if tests:
        # PFLlib's own evaluation of the same state.
        with contextlib.redirect_stdout(io.StringIO()):
            published()
        if keys["algorithm"] == "pFedMe":
            # With the shared parameters alone: what PFLlib evaluates as personal (docs/results.md).
            result["shared_accuracy"] = pooled([sums(server.global_model, rows) for rows in tests])["accuracy"]
        result["published_accuracy"] = (getattr(server, "rs_test_acc_per", []) or server.rs_test_acc)[-1]
    return result


def own_loader(client: Any, steps: int) -> Callable[[], Cut]:
    """PFLlib's loader, which reads the file in every visit, with a fixed number of minibatches."""
    from utils.data_utils import read_client_data

    def load() -> Cut:
        rows = read_client_data(client.dataset, client.id, is_train=True, few_shot=client.few_shot)
        # PFLlib always drops the last; a client with fewer rows than a minibatch would not train at all.
        whole = len(rows) >= client.batch_size
        return Cut(DataLoader(rows, client.batch_size, drop_last=whole, shuffle=True), steps)

    return load


def keep_personal(client: Any) -> None:
    """Keeps pFedMe's personal parameters: PFLlib's visit ends by writing the client's own w over them."""
    update = client.update_parameters

    def kept(model: torch.nn.Module, parameters: Any) -> None:
        if parameters is client.local_params:
            client.kept = [value.detach().clone() for value in model.parameters()]
        update(model, parameters)

    client.update_parameters = kept


def personal(server: Any, tests: list[Rows]) -> list[tuple[int, float, int]]:
    """Each client's predictor on its own test rows: what PFLlib evaluates, but for pFedMe, where it is p."""
    parts = []
    for client, rows in zip(server.clients, tests):
        predictor = client.model
        if hasattr(client, "kept"):
            predictor = copy.deepcopy(client.model)
            put(predictor, client.kept)
        parts.append(sums(predictor, rows))
    return parts


def put(model: torch.nn.Module, parameters: list[torch.Tensor]) -> None:
    for value, new in zip(model.parameters(), parameters):
        value.data = new


if __name__ == "__main__":
    result = main(json.loads(Path(sys.argv[1]).read_text()))
    Path(sys.argv[2]).write_text(json.dumps(result))
