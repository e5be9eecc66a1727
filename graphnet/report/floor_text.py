"""The sentence on a machine's noise floor that stands under every table of ratios."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphnet.analyze.pairs import MachineFloor, floors_of
from graphnet.evaluate.records import Environment, Floor, Result


def floor_lines(results: Iterable[Result], environments: Sequence[Environment]) -> list[str]:
    """A sentence for each machine, device and thread count among the results."""
    return sentences(floors_of(results, environments))


def sentences(floors: Sequence[MachineFloor]) -> list[str]:
    """A sentence for each floor; machines are named where there are several."""
    several = len({found.machine for found in floors}) > 1
    return [_sentence(found, several) for found in floors]


def of_floor(floor: Floor) -> str:
    """The sentence for a floor of this machine."""
    return _sentence(MachineFloor(machine="", device=floor.device, threads=floor.threads, floor=floor), named=False)


def _sentence(found: MachineFloor, named: bool) -> str:
    machine = f"machine {found.machine or 'unknown'}" if named else "this machine"
    place = f"{found.threads} thread{'' if found.threads == 1 else 's'}"
    if found.device != "cpu":
        place = f"{found.device}, {place}"
    floor = found.floor
    if floor is None:
        return f"Noise floor of {machine} ({place}): not measured; `graphnet noise` measures it"
    against = f", {_joined(floor.compilers)} against themselves" if floor.compilers else ""
    return (
        f"Noise floor of {machine} ({place}{against}, {floor.pairs} pairs): median |ratio - 1|"
        f" {_percent(floor.median)}, 95th percentile {_percent(floor.p95)};"
        f" one after the other {_percent(floor.sequential_p95)}"
    )


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %" if share < 0.1 else f"{share * 100:.0f} %"
