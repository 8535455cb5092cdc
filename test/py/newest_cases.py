#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the node cases that the newest onnx adds to the pinned one, as folders like those in the wheel: since 1.23 the
wheel makes its node cases by programs.

    newest_cases.py SITE OUT    SITE: a folder with the newest onnx, OUT: a folder that becomes full of cases
"""
import importlib.util
import os
import sys
import warnings


def proto(value, info, onnx):
    """A tensor, list or optional value as ONNX stores it in a .pb file."""
    kind = info.type.WhichOneof("value")
    make = {"sequence_type": onnx.numpy_helper.from_list, "optional_type": onnx.numpy_helper.from_optional}
    return value if isinstance(value, onnx.TensorProto) else make.get(kind, onnx.numpy_helper.from_array)(
        value, info.name)


def write(case, folder, onnx):
    os.makedirs(folder)
    onnx.save(case.model, os.path.join(folder, "model.onnx"))
    for i, (ins, outs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{i}")
        os.mkdir(data)
        for stem, values, infos in (("input", ins, case.model.graph.input), ("output", outs, case.model.graph.output)):
            for k, value in enumerate(values):
                with open(os.path.join(data, f"{stem}_{k}.pb"), "wb") as f:
                    f.write(proto(value, infos[k], onnx).SerializeToString())


def main():
    site, out = sys.argv[1:]
    pinned = os.path.join(os.path.dirname(importlib.util.find_spec("onnx").origin), "backend", "test", "data", "node")
    known = set(os.listdir(pinned))
    sys.path.insert(0, os.path.abspath(site))
    warnings.simplefilter("ignore")
    import onnx
    from onnx.backend.test.case import node
    count = 0
    for case in node.collect_testcases(None):
        if case.name not in known:
            write(case, os.path.join(out, case.name), onnx)
            count += 1
    print(f"onnx {onnx.__version__} adds {count} cases")


if __name__ == "__main__":
    main()
