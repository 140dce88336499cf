"""Messages of fedstein as records of Flower, and back."""

from __future__ import annotations

from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

__all__ = ["Carried", "carried", "content"]

# The names of the records, and how the bytes of an array are to be read.
ENVELOPE, NUMBERS, ARRAYS = "fedstein", "numbers", "arrays"
SERIALISED = "numpy.ndarray"

# The envelope, the numbers, and the names and .npy bytes of the arrays.
Carried = tuple[dict[str, int | str], dict[str, float], list[tuple[str, bytes]]]
# What the compiled part hands over: arrays have a type and a shape as well, and there are the kind and the round of the
# request.
Outgoing = tuple[dict[str, int | str], dict[str, float], list[tuple[str, str, list[int], bytes]], str, int]


def content(message: Outgoing) -> RecordDict:
    """The records of a message."""
    envelope, numbers, arrays, _, _ = message
    wrapped = {
        name: Array(dtype=dtype, shape=tuple(shape), stype=SERIALISED, data=data) for name, dtype, shape, data in arrays
    }
    return RecordDict(
        {
            ENVELOPE: ConfigRecord({**envelope}),
            NUMBERS: MetricRecord({**numbers}),
            ARRAYS: ArrayRecord(wrapped),
        }
    )


def carried(message: Message) -> Carried:
    """The message of fedstein in a message of Flower, of any origin.

    Raises
    ------
    ValueError
        It has none.
    """
    records: Any = message.content
    envelope = dict(records.config_records.get(ENVELOPE) or {})
    numbers = dict(records.metric_records.get(NUMBERS) or {})
    arrays = dict(records.array_records.get(ARRAYS) or {})
    if not envelope or not all(type(value) in (int, str) for value in envelope.values()):
        raise ValueError("the message is not one of fedstein")
    if not all(type(value) in (int, float) for value in numbers.values()):
        raise ValueError("the message has metrics that are not single numbers")
    return (
        envelope,
        {name: float(value) for name, value in numbers.items()},
        [(name, array.data) for name, array in arrays.items()],
    )
