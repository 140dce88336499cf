#!/usr/bin/env bash
# Times fedstein and the PyTorch and JAX reference programs ("yardsticks") in turn, in several passes, on an idle machine,
# and writes their ratios as a Markdown table.
#
#   FEDSTEIN_YARDSTICKS=../shared/yardsticks PY=venv/bin/python benches/side_by_side.sh
#
# FEDSTEIN_YARDSTICKS  folder with yard_torch.py and yard_jax.py (required)
# PY                   a Python with torch or jax or both [python3]
# ONLY                 workloads [W1,W2,W3,W4,W5,W6,W7]
# PASSES               how often everything is timed [3]
# THREADS              threads of every program [all cores]
# SECONDS_A_LINE       fedstein's seconds per line [2]
# BACKEND              fedstein's backend [flex]
# OUT                  where records and table go [target/side-by-side]
#
# Everything of one workload is timed in turn before the next workload begins, so that a slow minute of the machine
# affects all programs equally. A yardstick that is missing or fails is left out, and a message says so.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "side_by_side: $*" >&2; exit 2; }
note() { echo "side_by_side: $*" >&2; }

PY=${PY:-python3}
ONLY=${ONLY:-W1,W2,W3,W4,W5,W6,W7}
PASSES=${PASSES:-3}
THREADS=${THREADS:-$(getconf _NPROCESSORS_ONLN)}
SECONDS_A_LINE=${SECONDS_A_LINE:-2}
BACKEND=${BACKEND:-flex}
OUT=${OUT:-target/side-by-side}
YARDSTICKS=${FEDSTEIN_YARDSTICKS:-}

[ -n "$YARDSTICKS" ] || fail "FEDSTEIN_YARDSTICKS must name the folder of the yardsticks"
[ -f "$YARDSTICKS/yard_torch.py" ] || fail "there is no yard_torch.py in $YARDSTICKS"
command -v "$PY" >/dev/null || fail "there is no Python $PY; set PY"
[[ $PASSES =~ ^[1-9][0-9]*$ ]] || fail "PASSES must be a number from 1, not $PASSES"

has() { "$PY" -c "import $1" >/dev/null 2>&1; }
programs=(fedstein)
if has torch; then programs+=(torch); else note "$PY has no torch: its lines are left out"; fi
if has jax && [ -f "$YARDSTICKS/yard_jax.py" ]; then programs+=(jax); else note "$PY has no jax: its lines are left out"; fi
[ "${#programs[@]}" -gt 1 ] || fail "nothing to compare with: $PY has neither torch nor jax"

cargo build --release --locked >&2
fedstein=${CARGO_TARGET_DIR:-./target}/release/fedstein
mkdir -p "$OUT"
rm -f "$OUT"/pass-*.jsonl "$OUT"/log.txt

# time_one PROGRAM WORKLOAD PASS: its records, appended to the pass.
time_one() {
  local records=$PWD/$OUT/pass-$3.jsonl
  case $OUT in /*) records=$OUT/pass-$3.jsonl ;; esac
  case $1 in
    fedstein) "$fedstein" bench --backend "$BACKEND" --only "$2" --threads "$THREADS" \
                --seconds "$SECONDS_A_LINE" --json "$records" ;;
    torch) YARD_JSONL=$records "$PY" "$YARDSTICKS/yard_torch.py" --threads "$THREADS" --only "$2" --all-variants --compile ;;
    # JAX takes the cores that it may see.
    jax) YARD_JSONL=$records taskset -c "0-$((THREADS - 1))" "$PY" "$YARDSTICKS/yard_jax.py" --only "$2" --all-variants ;;
  esac
}

IFS=, read -ra workloads <<<"$ONLY"
for workload in "${workloads[@]}"; do
  for ((pass = 1; pass <= PASSES; pass++)); do
    for program in "${programs[@]}"; do
      note "$workload, pass $pass of $PASSES: $program"
      time_one "$program" "$workload" "$pass" >>"$OUT/log.txt" 2>&1 ||
        note "$program failed on $workload in pass $pass; see $OUT/log.txt"
    done
  done
done

"$PY" benches/side_by_side.py "$OUT"/pass-*.jsonl | tee "$OUT/table.md"
