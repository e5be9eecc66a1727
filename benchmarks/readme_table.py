"""Write a results folder as the table of both READMEs: `python benchmarks/readme_table.py RESULTS`."""

from __future__ import annotations

import sys
from pathlib import Path

from graphnet import load_results
from graphnet.analyze.frame import frame
from graphnet.evaluate.records import Result
from graphnet.evaluate.store import Store

BEGIN, END = "<!-- table:begin -->", "<!-- table:end -->"
BASELINE = "torch"


def table(results: list[Result]) -> str:
    names = list(dict.fromkeys(result.compiler for result in results))
    lines = ["| graph | " + " | ".join(names) + " |", "| --- |" + " ---: |" * len(names)]
    for _, rows in frame(results).groupby(level=0, sort=False):
        by_name = rows.set_index("compiler")
        base = by_name["end_to_end_time"].get(BASELINE)
        cells = []
        for name in names:
            seconds, verdict = by_name.at[name, "end_to_end_time"], by_name.at[name, "verdict"]
            ratio = "" if name == BASELINE else f" ({base / seconds:.2f}x)"
            cells.append(f"{seconds * 1e3:.3g}{ratio}" if verdict == "ok" else str(verdict))
        lines.append(f"| {rows['graph'].iloc[0]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def heading(folder: Path, results: list[Result], chinese: bool) -> str:
    with Store(folder, create=False) as store:
        machine = store.environments()[-1]
    versions: dict[str, str] = {}
    for result in results:
        versions |= result.versions
    stack = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    threads, day = results[0].target.threads, results[0].started[:10]
    if chinese:
        return f"由 `make demo` 得到；{machine.cpu_model}，{threads} 线程；{stack}；{day}。"
    return f"From `make demo`; {machine.cpu_model}, {threads} thread(s); {stack}; {day}."


def main(folder: Path) -> None:
    results = load_results(folder)
    for name, chinese in (("README.md", False), ("README.zh-CN.md", True)):
        path = Path(__file__).parents[1] / name
        before, rest = path.read_text().split(BEGIN)
        after = rest.split(END)[1]
        content = f"{heading(folder, results, chinese)}\n\n{table(results)}"
        path.write_text(f"{before}{BEGIN}\n{content}\n{END}{after}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
