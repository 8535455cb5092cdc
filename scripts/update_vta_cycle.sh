#!/usr/bin/env bash
# Rewrites the tables of docs/explanation/vta-cycle.md and docs/explanation/vta-timeline-*.svg with what the cycle model
# gives now: update_vta_cycle.sh [BUILD]. Read the difference: vta/test_calibration fails until it is committed.
# SPDX-License-Identifier: Apache-2.0
[ "${1:-}" != --help ] || { sed -n '2,/^# SPDX/{/SPDX/d;s/^# \{0,1\}//p}' "$0"; exit 0; }
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
ninja -C "$build" vta_test_calibration
LATHE_SOURCE=$PWD LATHE_UPDATE_DOCS=1 "$build/test/vta_test_calibration"
