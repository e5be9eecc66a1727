"""All that was ever measured of this machine: its peaks and noise floors, from the cache folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from graphnet.evaluate import environment, oracle
from graphnet.evaluate.records import Environment, Floor, Peaks
from graphnet.ir.fileio import write_atomic

T = TypeVar("T", Peaks, Floor)


def known_here() -> Environment:
    """This machine with all its peaks and floors in the cache."""
    here = environment.detect()
    return msgspec.structs.replace(
        here, peaks=tuple(_cached("peaks", Peaks, here.key)), floors=tuple(_cached("floors", Floor, here.key))
    )


def with_known_here(environments: Iterable[Environment]) -> list[Environment]:
    """The same, this machine among them with what was measured on it since."""
    here = known_here()
    return [
        environment.merged(machine, here) if machine.key == here.key else machine for machine in environments
    ]  # fmt: skip


def remember_floor(floor: Floor) -> None:
    """Keep the floor of this machine, in place of an older one of that device and thread count. Raises OSError."""
    file = oracle.cache_folder("floors") / f"{environment.detect().key}-{floor.device}-{floor.threads}.json"
    write_atomic(file, msgspec.json.format(msgspec.json.encode(floor), indent=1) + b"\n")


def _cached(part: str, kind: type[T], key: str) -> Iterator[T]:
    """What the cache has of the machine; nothing of a folder that cannot be used."""
    try:
        files = sorted(oracle.cache_folder(part).glob(f"{key}-*.json"))
    except OSError:
        return
    for file in files:
        found = _read(file, kind)
        if found is not None:
            yield found


def _read(file: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):  # absent, or of another version: measured anew
        return None
