#!/usr/bin/env bash
# Runs every configuration of docs/results.md in every density mode and prints its tables (Markdown).
# Usage: FEDSTEIN_DATA=path scripts/results.sh [OUT_DIR]     (about 20 minutes on 2 cores)
set -euo pipefail
cd "$(dirname "$0")/.."
fedstein=${FEDSTEIN:-target/release/fedstein}
out=${1:-runs/results}

# One run, one row: config, mode, extra --set options.
row() {
  local config=$1 mode=$2 dir
  shift 2
  dir=$out/$(echo "$config-$mode" | tr '/ ,=' '----')
  [ -f "$dir/summary.json" ] || "$fedstein" train "configs/$config.toml" --out "$dir" --force --quiet --set "name=$(basename "$dir" | tr -cd "a-zA-Z0-9._-")" "$@"
  awk -F, -v config="$config" -v mode="$mode" '
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    { n++; accuracy[n] = $column["accuracy"]; nll[n] = $column["nll"]; ece[n] = $column["ece"]
      mean[n] = $column["accuracy_mean_particle"]; mi[n] = $column["mutual_information"]; seconds = $column["seconds"] }
    END { printf "| %s | %s | %d | %.4f / %.3f | %.4f | %.4f | %.3f | %.4f | %.4f | %.1f |\n", config, mode, n,
          accuracy[5], nll[5], accuracy[n], mean[n], nll[n], ece[n], mi[n], seconds }' "$dir/rounds.csv"
}

modes() {
  local config=$1
  if [ "$config" = digits/dsvgd-bnn-skewed ]; then
    row "$config" "exact, λ = 0.1" --set algorithm.kde_bandwidth=0.1
  fi
  row "$config" "exact, λ = 0.55" --set algorithm.kde_bandwidth=0.55
  row "$config" "exact, median" --set algorithm.kde_bandwidth=median
  row "$config" "reference" --set algorithm.kde_bandwidth=0.55 --set algorithm.kde=reference
  row "$config" "off" --set algorithm.kde=off
}

echo "| config | densities | rounds | accuracy / NLL at round 5 | accuracy | mean particle | NLL | ECE | mutual information | seconds |"
echo "|---|---|---|---|---|---|---|---|---|---|"
for config in digits/dsvgd-bnn digits/dsvgd-bnn-skewed twonorm/dsvgd-blr twonorm/dsvgd-blr-20 \
  covertype/dsvgd-blr covertype/dsvgd-blr-20 mnist/dsvgd-bnn; do
  modes "$config"
done
for config in digits/svgd-bnn digits/fedavg-bnn twonorm/fedavg-blr covertype/fedavg-blr mnist/svgd-bnn mnist/fedavg-bnn; do
  row "$config" "–"
done
