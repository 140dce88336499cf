#!/usr/bin/env bash
# All measurements on a machine with a GPU, in one call:
#
#   benches/gpu.sh [FOLDER]          [target/gpu]
#
# parity of wgpu with the CPU; W1 to W8 on wgpu, on the CPU, and on cuda if BACKENDS names it; growth; and the PyTorch
# reference programs ("yardsticks") on the same card.
#
# FEDSTEIN_YARDSTICKS  folder with yard_torch.py; without it no yardsticks
# PY                   a Python whose torch sees the card [python3]
# ONLY                 workloads [W1,W2,W3,W4,W5,W6,W7,W8]
# BACKENDS             wgpu, or wgpu,cuda (building cuda downloads LLVM) [wgpu]
# SECONDS_A_LINE       seconds per line [5]
# CARGO_ARGS           further arguments of cargo, such as --offline
# FEDSTEIN, PARITY     the program and its test of parity where they are built, for a machine without cargo: with
#                      `cargo build --release` and `cargo test --release --test parity --no-run`, which prints a path
#
# The figures do not include the compilation of kernels: every backend runs all workloads once before it is timed, and a
# bench also warms up each workload. A part that is missing or fails is named at the end; the others continue.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-target/gpu}
PY=${PY:-python3}
ONLY=${ONLY:-W1,W2,W3,W4,W5,W6,W7,W8}
BACKENDS=${BACKENDS:-wgpu}
SECONDS_A_LINE=${SECONDS_A_LINE:-5}
YARDSTICKS=${FEDSTEIN_YARDSTICKS:-}
read -ra cargo_args <<<"${CARGO_ARGS:-}"
mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -f "$out"/*.jsonl

left_out=()
say() { printf '\n== %s\n' "$*"; }
skip() { left_out+=("$*"); echo "left out: $*"; }

say "the machine"
{
  date -u '+%F %T UTC'
  uname -srm
  command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv || true
  command -v vulkaninfo >/dev/null && vulkaninfo --summary 2>/dev/null | grep -E 'deviceName|driverInfo|apiVersion' || true
  git log -1 --format='%h %s' 2>/dev/null || true
} | tee "$out/machine.txt"

features=()
build() {
  case ,$BACKENDS, in *,cuda,*) features=(--features cuda) ;; esac
  if ! cargo build --release --locked "${cargo_args[@]}" "${features[@]}" 2>&1 | tee "$out/build.txt"; then
    [ "${#features[@]}" -gt 0 ] || { echo "gpu.sh: the build failed; see $out/build.txt" >&2; exit 1; }
    skip "cuda: it does not build here; see build.txt"
    BACKENDS=wgpu features=()
    cargo build --release --locked "${cargo_args[@]}"
  fi
}
fedstein=${FEDSTEIN:-./target/release/fedstein}
if [ -z "${FEDSTEIN:-}" ]; then
  say "build"
  build
fi
"$fedstein" backends | tee "$out/backends.txt"

say "parity of wgpu and the CPU"
parity() {
  if [ -n "${PARITY:-}" ]; then
    "$PARITY" --nocapture
  elif [ -n "${FEDSTEIN:-}" ]; then
    echo "PARITY is not set"
    return 1
  else
    cargo test --release --locked "${cargo_args[@]}" "${features[@]}" --test parity -- --nocapture
  fi
}
if ! FEDSTEIN_REQUIRE_WGPU=1 parity 2>&1 | tee "$out/parity.txt"; then
  skip "parity: FAILED or not run; see parity.txt, and trust no figure before it passes"
fi

IFS=, read -ra backends <<<"$BACKENDS"
for backend in "${backends[@]}" flex; do
  if ! grep -q "^$backend *opens" "$out/backends.txt"; then
    skip "$backend: $(grep "^$backend " "$out/backends.txt" | sed 's/^[a-z]* *//')"
    continue
  fi
  say "$backend: warm-up, not a figure"
  if [ "$backend" != flex ] &&
    ! "$fedstein" bench --backend "$backend" --only "$ONLY" --seconds 0.01 >"$out/$backend-warmup.txt" 2>&1; then
    tail -n 3 "$out/$backend-warmup.txt"
    skip "$backend: the warm-up failed; see $backend-warmup.txt"
    continue
  fi
  say "$backend"
  "$fedstein" bench --backend "$backend" --only "$ONLY" --seconds "$SECONDS_A_LINE" --json "$out/fedstein.jsonl" 2>&1 |
    tee "$out/$backend.txt" || skip "$backend: the bench failed; see $backend.txt"
  "$fedstein" bench --backend "$backend" --seconds "$SECONDS_A_LINE" --growth "$out/$backend-growth.svg" 2>&1 |
    tee "$out/$backend-growth.txt" || skip "$backend: growth failed; see $backend-growth.txt"
done

say "PyTorch on the same card"
if [ -z "$YARDSTICKS" ]; then
  skip "yardsticks: FEDSTEIN_YARDSTICKS is not set"
elif [ ! -f "$YARDSTICKS/yard_torch.py" ]; then
  skip "yardsticks: there is no yard_torch.py in $YARDSTICKS"
elif ! "$PY" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  skip "yardsticks: $PY has no torch that sees a GPU"
else
  YARD_JSONL=$out/torch.jsonl "$PY" "$YARDSTICKS/yard_torch.py" --dev cuda --only "$ONLY" --all-variants --compile 2>&1 |
    tee "$out/torch.txt" || skip "yardsticks: PyTorch failed; see torch.txt"
  if [ -s "$out/torch.jsonl" ] && [ -s "$out/fedstein.jsonl" ]; then
    for backend in "${backends[@]}"; do
      grep "\"impl\":\"fedstein/$backend\"" "$out/fedstein.jsonl" | cat - "$out/torch.jsonl" >"$out/$backend-and-torch.jsonl"
      printf '\n%s against PyTorch\n\n' "$backend"
      "$PY" benches/side_by_side.py "$out/$backend-and-torch.jsonl"
    done | tee "$out/ratios.md"
  fi
fi

say "all of it is in $out"
printf 'left out: %s\n' "${left_out[@]:-nothing}" | tee "$out/left-out.txt"
