# SPDX-License-Identifier: Apache-2.0
"""One closing line in the form that the project's test script counts."""


def pytest_terminal_summary(terminalreporter):
    count = lambda kind: len(terminalreporter.stats.get(kind, []))
    failed = count("failed") + count("error")
    terminalreporter.write_line(f"{count('passed')} passed, {failed} failed, {count('skipped')} skipped")
