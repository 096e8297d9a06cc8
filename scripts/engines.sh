#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Exports SmolLM2-135M and tiny models and runs them in Transformers and llama.cpp (docs/engines.md). Needs the network
# once: pip installs into build/engines/venv. Needs the packages of `scripts/setup.sh development`.
# Usage: scripts/engines.sh [PRESET]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-cpu}
KVS_MODEL=${KVS_MODEL:-$(scripts/fetch_model.sh)}
export KVS_MODEL
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" --target kvcalibrate print_logits -- -j "$(nproc)"
OMP_WAIT_POLICY=passive ctest --preset "$preset" -C Engines -L engines --no-tests=error
