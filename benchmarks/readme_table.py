"""Write a results folder as the table of both READMEs: `python benchmarks/readme_table.py RESULTS`."""

from __future__ import annotations

import sys
from pathlib import Path

from graphnet import load_results
from graphnet.evaluate.store import Store
from graphnet.report.summary import markdown_table, stack

BEGIN, END = "<!-- table:begin -->", "<!-- table:end -->"


def main(folder: Path) -> None:
    results = load_results(folder)
    with Store(folder, create=False) as store:
        machine = store.environments()[-1].cpu_model
    threads, day = results[0].target.threads, results[0].started[:10]
    headings = {
        "README.md": f"From `make demo`; {machine}, {threads} thread(s); {stack(results)}; {day}.",
        "README.zh-CN.md": f"由 `make demo` 得到；{machine}，{threads} 线程；{stack(results)}；{day}。",
    }
    for name, heading in headings.items():
        path = Path(__file__).parents[1] / name
        before, rest = path.read_text().split(BEGIN)
        after = rest.split(END)[1]
        path.write_text(f"{before}{BEGIN}\n{heading}\n\n{markdown_table(results)}\n{END}{after}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
