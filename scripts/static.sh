#!/usr/bin/env bash
# Builds fedstein for Linux (x86-64) as one file without dependencies: it needs neither the machine's C library nor a compiler,
# Python or the internet, and was tried in an empty root directory. It has the CPU backend and the native node, and no GPU backend.
#
#   apt-get install musl-tools && rustup target add x86_64-unknown-linux-musl
#   scripts/static.sh                        # target/x86_64-unknown-linux-musl/release/fedstein
#   scripts/static.sh test --test numerics   # its tests; arguments of `cargo test`
set -euo pipefail
cd "$(dirname "$0")/.."

common=(--release --locked --no-default-features --features flower --target x86_64-unknown-linux-musl)
if [ "${1-}" = test ]; then
  exec cargo test "${common[@]}" --no-fail-fast "${@:2}"
fi
cargo build "${common[@]}" --bin fedstein "$@"
