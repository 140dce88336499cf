#!/usr/bin/env bash
# Builds fedstein for Windows (x86-64, GNU ABI) and runs its tests under Wine, on Linux:
#
#   apt-get install gcc-mingw-w64-x86-64 wine64 && rustup target add x86_64-pc-windows-gnu
#   scripts/windows.sh                      # build and test; some 45 minutes on 2 cores
#   scripts/windows.sh --test cli train::   # arguments of `cargo test`
#
# The program is target/x86_64-pc-windows-gnu/release/fedstein.exe, one file that needs no installation. Wine is not Windows:
# files, locks, processes, paths and messages are tried, graphics are not, and there is no signal by which a test could stop a run.
set -euo pipefail
cd "$(dirname "$0")/.."

target=x86_64-pc-windows-gnu
wine=$(command -v wine64 || ls /usr/lib/wine/wine64)
export WINEPREFIX=${WINEPREFIX:-$PWD/target/wine} WINEDEBUG=-all CARGO_INCREMENTAL=0
# Wine's processes need some fixed addresses, which random ones and the heap of .cargo/config.toml take now and then.
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER="env -u MALLOC_MMAP_THRESHOLD_ -u MALLOC_TRIM_THRESHOLD_ -u MALLOC_TOP_PAD_ setarch -R $wine"

mkdir -p "$WINEPREFIX"
"$wine" wineboot --init >/dev/null 2>&1 || true
# Wine 8 lacks the library from which Rust has its random numbers.
library=$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll
if [ ! -f "$library" ]; then
  printf '%s\n' '#include <windows.h>' '#include <ntsecapi.h>' \
    '__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T bytes) { return RtlGenRandom(to, (ULONG)bytes); }' |
    x86_64-w64-mingw32-gcc -shared -x c - -o "$library" -ladvapi32
fi

if [ $# = 0 ]; then
  set -- --workspace --exclude fedstein-python --lib --bins --tests
fi
cargo test --release --locked --target "$target" --no-fail-fast "$@"
