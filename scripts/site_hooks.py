# SPDX-License-Identifier: Apache-2.0
"""What MkDocs cannot do by itself. Pages in other folders of the tree (README files, ARCHITECTURE.md) get a place in
the site. Links to them follow; a link to a source file, which the site does not have, becomes its text. A link to a
file that is not in the tree is a warning, which ends the build."""
import logging
import os
import re

from mkdocs.structure.files import File

ELSEWHERE = {
    "ARCHITECTURE.md": "notes/architecture.md",
    "STYLE.md": "notes/style.md",
    "CONTRIBUTING.md": "notes/contributing.md",
    "CHANGELOG.md": "notes/changelog.md",
    "bindings/python/README.md": "reference/vta-ffi.md",
    "schedules/README.md": "reference/schedules.md",
    "README.md": "index.md",
}
FENCE = re.compile(r"^( *)(```+).*?^\1\2 *$", re.M | re.S)
LINK = re.compile(r"`[^`]*`|(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
log = logging.getLogger("mkdocs.hooks")


def top(config):
    return os.path.dirname(config.config_file_path)


def on_files(files, config):
    for path, uri in ELSEWHERE.items():
        if uri != "index.md":
            files.append(File.generated(config, uri, abs_src_path=os.path.join(top(config), path)))
    return files


def site_uri(path):
    """Where the site has a file of the tree; None: nowhere."""
    return path[len("docs/"):] if path.startswith("docs/") else ELSEWHERE.get(path)


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri
    if uri.startswith("c/"):
        return markdown
    origin = next((p for p, u in ELSEWHERE.items() if u == uri and u != "index.md"), "docs/" + uri)

    def link(match):
        image, text, target = match.groups()
        if target is None:  # code
            return match.group(0)
        path, _, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return match.group(0)
        path = os.path.normpath(os.path.join(os.path.dirname(origin), path))
        if path.startswith("docs/c/"):  # made by Doxygen
            return match.group(0)
        if not os.path.exists(os.path.join(top(config), path)):
            log.warning("%s links to %s, which is not in the tree", origin, path)
        there = site_uri(path)
        if there is None or os.path.isdir(os.path.join(top(config), path)):
            return text
        relative = os.path.relpath(there, os.path.dirname(uri) or ".")
        return f"{image}[{text}]({relative}{'#' + anchor if anchor else ''})"

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(link, markdown[end:fence.start()]), fence.group(0)]
        end = fence.end()
    return "".join(parts) + LINK.sub(link, markdown[end:])
