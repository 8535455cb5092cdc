# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows for an executable: the head of the report page, from the report, in HTML without scripts."""

from __future__ import annotations

import html
import typing

if typing.TYPE_CHECKING:
    from ._compiler import Executable, Tensor

_KERNELS = 8  # the largest ones are shown
_LEFT = {
    "loops_left_serial": "loops that should be vectors and are not",
    "loops_left_whole": "loops with conditions that were not cut",
    "guards_left": "conditions in innermost loops",
    "products_scalar": "innermost loops that add products without vectors",
    "loops_plain": "innermost loops that run without vectors",
    "calls_scalar": "calls of functions for one number at a time",
    "registers_beyond": "vectors of sums without a register",
    "instructions_left": "loops and values without an instruction that the processor has for them",
    "workers_idle": "workers without work while a large operator runs",
}


def _size(n: int) -> str:
    for unit, one in (("MB", 1 << 20), ("KB", 1 << 10)):
        if n >= one:
            return f"{n / one:.3g} {unit}"
    return f"{n} bytes"


def _row(cells: typing.Iterable[object], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(str(c))}</{tag}>" for c in cells) + "</tr>"


def _ends(kind: str, tensors: typing.Iterable[Tensor]) -> str:
    return "".join(_row((kind, t.name, t.dtype, "×".join(str(d) for d in t.shape))) for t in tensors)


def _verdict(report: dict[str, typing.Any]) -> str:
    memory = report["proof"]["memory"]
    return (
        f"<p><b>{html.escape(report['model'])}</b> on {html.escape(report['target'])} needs "
        f"{_size(memory['workspace'] + memory['tables'])} of RAM and {_size(memory['constants'])} of flash for its "
        f"constants. A run takes {report['macs']:,} multiply-adds in {len(report['operators'])} kernels.</p>"
    )


def _findings(report: dict[str, typing.Any]) -> str:
    found = [f"{what}: {report[key]}" for key, what in _LEFT.items() if report.get(key)]
    seen: dict[str, int] = {}
    for r in report["remarks"]:
        seen[r["remark"]] = seen.get(r["remark"], 0) + 1
    found += [f"{text} (nodes: {n})" for text, n in seen.items()]
    return "<ul>" + "".join(f"<li>{html.escape(f)}</li>" for f in found) + "</ul>" if found else ""


def _nodes(source: str) -> str:
    """Each node once: one that became several operators stands there for each of them."""
    return ", ".join(dict.fromkeys(source.split(", ")))


def _kernels(report: dict[str, typing.Any]) -> str:
    largest = sorted(report["operators"], key=lambda o: -o["macs"])[:_KERNELS]
    rows = "".join(_row((o["kernel"], _nodes(o["source"]), f"{o['macs']:,}")) for o in largest if o["macs"])
    if not rows:
        return ""
    head = _row(("kernel", "nodes of the model", "multiply-adds"), "th")
    return f"<details><summary>Largest kernels</summary><table>{head}{rows}</table></details>"


def summary(e: Executable) -> str:
    """A fragment of HTML; text of the model in it is escaped."""
    report = e.report
    ends = f"<table>{_ends('input', e.inputs)}{_ends('output', e.outputs)}</table>"
    if not report:  # a module of another tool
        return f"<div><p>A {html.escape(e.kind)} without a report.</p>{ends}</div>"
    return f"<div>{_verdict(report)}{ends}{_findings(report)}{_kernels(report)}</div>"
