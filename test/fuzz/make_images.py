#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test/fuzz/corpus/image: one small picture of each kind that the decoder reads, behind its height and width as
fuzz_image.c takes them. Needs numpy and Pillow."""
import argparse
import io
import os

import numpy as np
from PIL import Image

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "image")
HEIGHT, WIDTH = 17, 21
KINDS = {  # name: (mode, format, what Pillow's save gets)
    "png-rgb": ("RGB", "PNG", {}), "png-rgba": ("RGBA", "PNG", {}), "png-gray": ("L", "PNG", {}),
    "png-gray-alpha": ("LA", "PNG", {}), "png-palette": ("P", "PNG", {}), "png-bits": ("1", "PNG", {}),
    "png-stored": ("RGB", "PNG", {"compress_level": 0}),
    "jpeg-420": ("RGB", "JPEG", {"quality": 60}), "jpeg-444": ("RGB", "JPEG", {"subsampling": 0, "quality": 60}),
    "jpeg-gray": ("L", "JPEG", {"quality": 60}), "jpeg-restart": ("RGB", "JPEG", {"restart_marker_rows": 1}),
    "jpeg-progressive": ("RGB", "JPEG", {"progressive": True}),
    "bmp": ("RGB", "BMP", {}), "pnm": ("RGB", "PPM", {}), "tiff": ("RGB", "TIFF", {}),
}


def write(name, file):
    with open(os.path.join(FOLDER, name), "wb") as out:
        out.write(bytes([HEIGHT - 1, WIDTH - 1]) + file)


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    pixels = np.stack([rows * 15, columns * 12, (rows * columns) % 256], axis=-1).astype(np.uint8)
    os.makedirs(FOLDER, exist_ok=True)
    for name, (mode, kind, options) in KINDS.items():
        file = io.BytesIO()
        Image.fromarray(pixels).convert(mode).save(file, kind, **options)
        write(name, file.getvalue())
        if name == "jpeg-444":
            frame = file.getvalue().index(b"\xff\xc0") + 11  # samples of the first color; three bytes for each
            write("jpeg-no-samples", bytes(0 if i in (frame, frame + 3, frame + 6) else b
                                           for i, b in enumerate(file.getvalue())))


if __name__ == "__main__":
    main()
