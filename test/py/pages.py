#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Report pages in a browser: no error of a script, no boxes that overlap, no edge behind a box, nothing wider than the
window, at four widths from 400 to 2000 pixels and in both themes; search, keys, the views of the graph and the details
do what they say. Without Chromium the test is skipped.

    pages.py [--lathe FILE] [--keep DIR]     DIR: where pages and pictures stay
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import browser
import models
from onnx import TensorProto, helper, save

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
ZOO = TOP.parent / "shared" / "models" / "mlperf-tiny"
WIDTHS = (400, 760, 1280, 2000)


def counted(lathe, folder):
    """Instructions of the residual network on a board, or None where there is no emulator."""
    if not shutil.which("arm-none-eabi-gcc") or not shutil.which("qemu-system-arm"):
        return None
    path = os.path.join(folder, "counts.json")
    with open(path, "wb") as f:
        subprocess.run([lathe, "verify", TOP / "demo" / "residual.onnx", "--target", "qemu-m4", "--against",
                        "interpreter", "--json"], stdout=f, stderr=subprocess.DEVNULL, check=True)
    return path


def pages(lathe, folder):
    """(name, model, options) of the pages, as far as the models are here. No options: `lathe view` shows the model."""
    yield "unknown", odd_model(folder), None
    yield "digits", TOP / "demo" / "digits.onnx", []
    yield "digits-column", TOP / "demo" / "digits.onnx", []
    yield "digits-compared", TOP / "demo" / "digits.onnx", ["--workers", "1", "--compare", f"{folder}/digits.html"]
    counts = counted(lathe, folder)
    if counts:
        yield "counted", TOP / "demo" / "residual.onnx", ["--target", "cortex-m4", "--ram", "64K", "--profile", counts]
    yield "vta-region", TOP / "demo" / "residual_vta.onnx", ["--offload", "vta"]
    if (ZOO / "vww_qdq.onnx").exists():
        yield "vww", ZOO / "vww_qdq.onnx", ["--integers", "--target", "cortex-m4"]
    for model in models.all_models():
        if model.name in ("resnet50", "minilm") and not model.skip:
            yield model.name, model.write(folder), []
        if model.name == "minilm" and not model.skip:
            yield "minilm-column", model.write(folder), []


def odd_model(folder):
    """A model with operators that nobody knows, and nodes behind them."""
    path, info = os.path.join(folder, "odd.onnx"), helper.make_tensor_value_info
    nodes = [helper.make_node("Relu", ["x"], ["a"], "first"),
             helper.make_node("FancyNorm", ["a"], ["b"], "fancy", domain="acme"),
             helper.make_node("Add", ["b", "a"], ["c"], "add"),
             helper.make_node("Mystery", ["c", "a"], ["y"], "mystery"),
             helper.make_node("Neg", ["a"], ["z"], "last")]
    x, y, z = (info(name, TensorProto.FLOAT, [1, 8]) for name in "xyz")
    sets = [helper.make_opsetid("", 13), helper.make_opsetid("acme", 1)]
    save(helper.make_model(helper.make_graph(nodes, "g", [x], [y, z]), opset_imports=sets), path)
    return path


def viewed(lathe, model, path):
    """The page that `lathe view` serves, as a file."""
    with subprocess.Popen([lathe, "view", model], stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().split()[1]
            with urllib.request.urlopen(url, timeout=60) as page, open(path, "wb") as f:
                f.write(page.read())
        finally:
            server.kill()


UNREAD = """(() => {
  const kinds = lathePage.page.model.nodes.map(n => n.unread || "read").join(", ");
  const want = "read, unknown operator, not read, unknown operator, read";
  const said = document.getElementById("verdict").textContent;
  const named = said.includes("FancyNorm, Mystery");
  return (kinds === want ? [] : ["nodes are " + kinds]).concat(named ? [] : ["no names: " + said]);
})()"""


def look(b, theme):
    """What is wrong with an open page."""
    wrong = list(b.faults)
    if not wrong:
        wrong += b.run("lathePage.check()")
        shown = b.run("document.documentElement.dataset.theme")
        wrong += [f"the theme is {shown}"] if shown != theme else []
    return wrong


USE = """(() => {
  const wrong = [], must = (ok, what) => { if (!ok) wrong.push(what); }, view = lathePage.view, press = key =>
    view.svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  for (const button of document.querySelectorAll("#graph .group button")) {
    button.click();
    must(button.getAttribute("aria-pressed") === "true", button.textContent + " is not pressed");
    wrong.push(...lathePage.check().map(w => button.textContent + ": " + w));
  }
  must(!/[ ≈≤]0\.0\d* ms/.test(document.getElementById("verdict").textContent), "a time in a unit that is too large");
  document.querySelector("#graph .group button").click();
  const kinds = view.boxes.map(b => b.kind);
  must(kinds.includes("kernel") && view.boxes.filter(b => b.title === "input").length > 0, "no kernels, or no inputs");
  must(view.boxes.filter(b => b.title === "output").length === lathePage.page.outputs.length, "outputs are missing");
  must(view.edges.length > 0 && view.edges.every(e => e.type !== ""), "edges without types");
  must(view.search(view.boxes[1].title) > 0 && view.search("no such node") === 0, "search");
  const before = view.at.scale;
  press("+");
  must(view.at.scale > before, "zoom");
  press("0");
  press("n");
  press("n");
  must(view.chosen !== null, "no box is chosen");
  press("Enter");
  const panel = document.querySelector("#graph .panel");
  must(!panel.hidden, "no details");
  wrong.push(...lathePage.check().map(w => "details: " + w));
  press("Escape");
  must(panel.hidden, "details stay");
  const row = document.querySelector("#kernels details[id]");
  row.open = true;
  return new Promise(done => setTimeout(() => {
    must([...row.querySelectorAll("[role=tab]")].some(t => t.textContent === "C"), "a kernel without C");
    must(row.querySelectorAll(".copy").length === 1, "no button to copy");
    const theme = document.documentElement.dataset.theme;
    document.getElementById("theme").click();
    must(document.documentElement.dataset.theme !== theme, "the theme stays");
    document.getElementById("theme").click();
    localStorage.removeItem("lathe-theme"); // the next page begins with the system's
    done(wrong.concat(lathePage.check().map(w => "a kernel: " + w)));
  }, 100));
})()"""


def without_dagre(path):
    """The page as a compiler without dagre writes it: boxes in one column."""
    with open(path, encoding="utf-8") as f:
        page, n = re.subn(r"<!-- dagre.*?</script>", "", f.read(), count=1, flags=re.DOTALL)
    with open(path, "w", encoding="utf-8") as f:
        f.write(page)
    assert n <= 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lathe", default=str(TOP / "build" / "lathe"))
    parser.add_argument("--keep")
    options = parser.parse_args()
    if not browser.find():
        print("pages: no Chromium here (Debian: chromium)\n0 passed, 0 failed, 1 skipped")
        return 77
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch, browser.Browser() as b:
        folder = options.keep or scratch
        os.makedirs(folder, exist_ok=True)
        for name, model, settings in pages(options.lathe, folder):
            path = os.path.join(folder, name + ".html")
            if settings is None:
                viewed(options.lathe, model, path)
            else:
                subprocess.run([options.lathe, "inspect", str(model), "--html", path, *settings], check=True)
            if name.endswith("column"):
                without_dagre(path)
            for width in WIDTHS:
                for theme in ("light", "dark"):
                    b.open("file://" + os.path.abspath(path), width, theme=theme)
                    wrong = look(b, theme)
                    if options.keep and width in (WIDTHS[0], WIDTHS[-1]):
                        b.picture(os.path.join(folder, f"{name}-{width}-{theme}.png"))
                    if theme == "light" and not wrong:
                        wrong = b.run(UNREAD if settings is None else USE) + b.faults
                    passed, failed = passed + (not wrong), failed + bool(wrong)
                    for w in wrong[:5]:
                        print(f"FAILED {name}, {width} pixels, {theme}: {w}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
