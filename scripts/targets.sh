#!/usr/bin/env bash
# Checks on Linux that the small build, with its tests, compiles for systems that no test runs on:
#
#   scripts/targets.sh                        # macOS (ARM), Windows (MSVC) and Linux (ARM); ten minutes together, on 2 cores
#   scripts/targets.sh aarch64-apple-darwin   # one of them
#
# `cargo check` compiles no machine code, so that neither a linker nor a C compiler for the system is needed: the C sources of
# a dependency (ring) go to a stand-in that writes empty files. Warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
cat >"$tools/compiler" <<'END'
#!/usr/bin/env bash
# Makes the file that a compiler or an archiver would write.
file= previous=
for argument in "$@"; do
  case $argument in
    -Fo*) file=${argument#-Fo} ;;     # cl.exe
    -out:*) file=${argument#-out:} ;; # lib.exe
    *.a) file=$argument ;;            # ar
  esac
  [ "$previous" = -o ] && file=$argument
  previous=$argument
done
[ -z "$file" ] || : >"$file"
END
chmod +x "$tools/compiler"

[ $# = 0 ] && set -- aarch64-apple-darwin x86_64-pc-windows-msvc aarch64-unknown-linux-gnu
for target; do
  echo "$target"
  rustup target add "$target" >/dev/null 2>&1
  name=${target//-/_}
  env "CC_$name=$tools/compiler" "AR_$name=$tools/compiler" CARGO_TARGET_DIR=target/targets RUSTFLAGS=-Dwarnings \
    cargo check --workspace --no-default-features --all-targets --locked --quiet --target "$target"
done
