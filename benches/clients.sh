#!/usr/bin/env bash
# Peak memory of a simulation against its number of clients K: the MNIST experiment of
# configs/mnist/dsvgd-1000-clients.toml with 10, 100 and 1000 clients in ten rounds, so that the same number of clients
# trains; then 125 to 1000 clients that have all trained once, N = 10, a step each; then 10,000 clients of fedwba, which each
# keep ten particles, 100 a round until all have trained, with a budget of 1 GiB for their states (30 GB of files under the
# directory of temporary files). FEDSTEIN_DATA must hold MNIST.
#
#   benches/clients.sh [--set KEY=VALUE ...]
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --locked >&2
fedstein=${CARGO_TARGET_DIR:-./target}/release/fedstein
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

# peak COMMAND...: its largest resident memory in MiB, in seconds of wall clock.
peak() {
  python3 - "$@" <<'PY'
import resource, subprocess, sys, time
start = time.monotonic()
code = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
# Linux counts in KiB, macOS in bytes.
unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
print(f"{usage.ru_maxrss / unit:.0f} {time.monotonic() - start:.0f}")
sys.exit(code)
PY
}

# row CLIENTS NAME WORDS...: one run, one line.
row() {
  local clients=$1 name=$2 figures
  shift 2
  figures=$(peak "$fedstein" train configs/mnist/dsvgd-1000-clients.toml --quiet \
    --set "partition.clients=$clients" --out "$runs/$name" "$@")
  # shellcheck disable=SC2086 # two figures, two columns
  printf '%8s %16s %10s %8s\n' "$clients" "$name" $figures
}

printf '%8s %16s %10s %8s\n' clients 'have trained' 'peak MiB' seconds
for clients in 10 100 1000; do row "$clients" 10 --force "$@"; done
for clients in 125 250 500 1000; do
  row "$clients" all --force --set checkpoint.enabled=false --set "rounds=$clients" --set "evaluation.every=$clients" \
    --set algorithm.particles=10 --set algorithm.local_steps=1 --set algorithm.distill_steps=1 "$@"
done
row 10000 all --force --set checkpoint.enabled=false --set rounds=100 --set evaluation.every=100 \
  --set algorithm.kind=fedwba --set algorithm.particles=10 --set algorithm.local_steps=1 --set schedule.kind=round-robin \
  --set schedule.clients=100 --set partition.kind=iid --set federation.memory_mib=1024 "$@"
