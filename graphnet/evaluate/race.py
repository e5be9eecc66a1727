"""A race: programs that live side by side, suspended but for one, and take turns, so that drift hits all alike."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Mapping, Sequence

import msgspec

from graphnet.evaluate import rounds
from graphnet.evaluate.entrant import Entrant
from graphnet.evaluate.plan import Limits
from graphnet.evaluate.protocol import Work
from graphnet.evaluate.records import Timing
from graphnet.evaluate.server import Server
from graphnet.evaluate.supervise import Outcome


class Runner(msgspec.Struct, frozen=True):
    """A job and the server for it, which has no other job in the race."""

    server: Server
    work: Work


def run(runners: Sequence[Runner], limits: Limits, starting: Callable[[int], object] = lambda _: None) -> list[Outcome]:
    """Time all jobs in turns; one outcome for each, in order. `starting` is told the number of a job before it begins.

    A job for which memory has no room beside the others is timed in a further race with the first one, whose outcome
    gets the field `more_timings`; if there is no room even so, alone.
    """
    outcomes: dict[int, Outcome] = {}
    more: list[Timing] = []
    pending, alone = list(range(len(runners))), False
    while pending:
        numbers = pending[:1] if alone else sorted({0, *pending})
        found, short = _heat({number: runners[number] for number in numbers}, limits, starting)
        if 0 in outcomes and 0 in found:
            again = found.pop(0)
            more += [again.fields["timing"]] if found and "timing" in again.fields else []
        outcomes |= found
        pending = [number for number in pending if number in short or number not in numbers]
        alone = bool(short) and sorted({0, *pending}) == numbers
    if more:
        first = outcomes[0]
        outcomes[0] = msgspec.structs.replace(first, fields={**first.fields, "more_timings": tuple(more)})
    return [outcomes[number] for number in range(len(runners))]


def _heat(
    runners: Mapping[int, Runner], limits: Limits, starting: Callable[[int], object]
) -> tuple[dict[int, Outcome], set[int]]:
    """Outcomes by number, and the numbers of those that found too little memory beside the others."""
    entrants = {
        number: Entrant(runner.server, runner.work, limits) for number, runner in runners.items()
    }  # fmt: skip
    everyone = list(entrants.values())
    for number, entrant in entrants.items():
        starting(number)
        entrant.start(_held(everyone, entrant))
    _take_turns(everyone, random.Random(secrets.randbits(64)))
    for entrant in everyone:
        entrant.finish(_held(everyone, entrant))
    race = secrets.token_hex(8)
    short = {number for number, entrant in entrants.items() if entrant.short_of_memory}
    return {number: entrants[number].outcome(race) for number in entrants.keys() - short}, short


def _take_turns(everyone: Sequence[Entrant], order: random.Random) -> None:
    """Rounds until every program has had its turns and is known well enough, or has no budget left."""
    first = everyone[0]
    for number in range(rounds.MOST_ROUNDS):
        racing = [entrant for entrant in everyone if entrant.waiting]
        if number < rounds.ROUNDS:
            racing = [entrant for entrant in racing if entrant.takes_part(number)]
        else:
            unsure = [one for one in racing if one.wants_more(first if first.waiting and one is not first else None)]
            if not unsure:
                return
            racing = [entrant for entrant in racing if entrant is first or entrant in unsure]
        for entrant in order.sample(racing, len(racing)):
            entrant.turn(number, _held(everyone, entrant))


def _held(everyone: Sequence[Entrant], entrant: Entrant) -> int:
    return sum(other.held_bytes for other in everyone if other is not entrant)
