#!/bin/sh
# Accuracy and NLL under attack: the tables of docs/reliability.md, as Markdown on standard output.
#
#   scripts/faults.sh DATA ALGORITHM SEEDS [--set KEY=VALUE ...]
#
# for example  scripts/faults.sh digits fedavg "1 2 3" --set partition.kind=iid
# Ten clients, all of them in every round; 10 % and 30 % of them send sign-flipped or hundredfold changes in every round.
set -eu
data=$1 algorithm=$2 seeds=$3
shift 3
fedstein=${FEDSTEIN:-target/release/fedstein}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# `accuracy nll` after the last round, means over the seeds; a run that failed leaves "–".
last() {
    for seed in $seeds; do
        run="$place/run-$seed"
        if "$fedstein" train "$place/base.toml" --quiet --force --seed "$seed" --out "$run" "$@" 2>>"$place/errors"; then
            tail -n 1 "$run/rounds.csv" | awk -F, -v header="$(head -n 1 "$run/rounds.csv")" \
                '{ n = split(header, name, ","); for (i = 1; i <= n; i++) at[name[i]] = i; print $at["accuracy"], $at["nll"] }'
        fi
    done | awk '{ a += $1; l += $2; n++ } END { if (n) printf "%.3f / %.3g", a / n, l / n; else printf "–" }'
}

case $algorithm in
    fedavg) own='local_steps = 20
batch = 50' ; lr=5e-3 ;;
    fedwba) own='particles = 10
local_steps = 20
batch = 50' ; lr=5e-3 ;;
    *) echo "unknown algorithm $algorithm" >&2; exit 2 ;;
esac
cat >"$place/base.toml" <<END
name = "faults"
rounds = 20
data = { kind = "$data" }
partition = { kind = "iid", clients = 10 }
model = { kind = "bnn", hidden = [50] }
schedule = { clients = 10 }
optimizer = { lr = $lr }
evaluation = { every = 20 }
[algorithm]
kind = "$algorithm"
$own
END

echo "| $data, $algorithm | no attack | sign-flip 10 % | sign-flip 30 % | ×100 10 % | ×100 30 % |"
echo "|---|---|---|---|---|---|"
for rule in none norm-clip median trimmed; do
    printf '| `%s` | %s' "$rule" "$(last --set federation.robust=$rule "$@")"
    for kind in sign-flip huge-norm; do
        for share in 0.1 0.3; do
            printf ' | %s' "$(last --set federation.robust=$rule --set "faults.kinds=[\"$kind\"]" --set faults.share=$share "$@")"
        done
    done
    echo ' |'
done
