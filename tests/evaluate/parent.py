"""A process that evaluates graph files and prints a line for each result, to be interrupted by tests."""

from __future__ import annotations

import signal
import sys

from graphnet.compilers import Target
from graphnet.evaluate.plan import plan
from graphnet.evaluate.runner import run
from graphnet.evaluate.store import Store


def main(folder: str, compiler: str, files: list[str]) -> None:
    jobs = plan(files, [compiler], target=Target(options={"fault": "", "at": ""}), budget_s=0.02)
    with Store(folder) as store:
        for result in run(jobs, store, resume=True):
            print(result.graph, result.verdict, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits it ignored
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
