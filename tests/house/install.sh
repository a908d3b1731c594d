#!/usr/bin/env bash
# install.sh SOURCE BUILD CC: what is installed serves a stranger. Installs
# under a prefix that is then moved; builds the outside project tests/install
# through CMake and through pkg-config; runs its program; compiles each header
# alone as C++, and a program in it; loads the library by dlopen(); and has the
# installed program load the outside plugin and one of its own.
set -euo pipefail
source=$1 build=$2 cc=$3
work=$build/install-test
rm -rf "$work"
mkdir -p "$work"

cmake --install "$build" --prefix "$work/first" >"$work/install.log"
prefix=$work/moved
mv "$work/first" "$prefix"
lib=$(dirname "$(find "$prefix" -name 'liblockstep.so')")

expect() {
    [ -e "$1" ] || { echo "not installed: $1" && exit 1; }
}
expect "$prefix/bin/lockstep"
expect "$prefix/include/lockstep/lockstep.h"
expect "$prefix/include/lockstep/plugin.h"
expect "$prefix/share/lockstep/configs/cartpole.yaml"
expect "$lib/liblockstep.so.0"
expect "$lib/lockstep/plugins/cartpole.so"
stray=$(find "$prefix/include" -type f ! -path "*/include/lockstep/*.h")
[ -z "$stray" ] || { printf 'not for others:\n%s\n' "$stray" && exit 1; }

if command -v gdb >/dev/null; then
    echo "-- with gdb"
    gdb -q -nx -batch -iex 'set debuginfod enabled off' \
        -iex "add-auto-load-safe-path $lib" -ex 'help lockstep break' \
        "$(readlink -f "$lib/liblockstep.so")" >"$work/gdb.log"
    grep -q '^lockstep break NODE STEP' "$work/gdb.log"
fi

echo "-- with CMake"
cmake -S "$source/tests/install" -B "$work/cmake" -G Ninja \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" --log-level=NOTICE
cmake --build "$work/cmake" -- --quiet
"$work/cmake/hello"

echo "-- with pkg-config"
export PKG_CONFIG_PATH=$lib/pkgconfig
mkdir -p "$work/pkg-config"
read -ra flags < <(pkg-config --cflags --libs lockstep)
"$cc" -std=c11 "$source/tests/install/hello.c" -o "$work/pkg-config/hello" \
    "${flags[@]}" -Wl,-rpath,"$lib"
"$work/pkg-config/hello"
"$cc" -std=c11 -shared -fPIC -fvisibility=hidden \
    "$source/tests/install/outside.c" -o "$work/pkg-config/outside.so" \
    "${flags[@]}"

echo "-- from C++"
cxx=$(command -v g++ || command -v clang++)
cxx_flags=(-std=c++17 -Wall -Wextra -Wpedantic -Werror)
for header in "$prefix"/include/lockstep/*.h; do
    "$cxx" "${cxx_flags[@]}" -fsyntax-only "${flags[@]}" -x c++ - \
        <<<"#include <lockstep/${header##*/}>"
done
"$cxx" "${cxx_flags[@]}" "$source/tests/install/hello.cpp" \
    -o "$work/pkg-config/hello++" "${flags[@]}" -Wl,-rpath,"$lib"
"$work/pkg-config/hello++"

echo "-- loaded by a program that runs"
"$cc" -std=c11 -D_POSIX_C_SOURCE=200809L -I"$prefix/include" \
    "$source/tests/install/load.c" -o "$work/pkg-config/load" -ldl
"$work/pkg-config/load" "$lib/liblockstep.so.0"

echo "-- the installed program"
env -u LD_LIBRARY_PATH "$prefix/bin/lockstep" --version
for plugin in "$work/cmake/outside.so" "$work/pkg-config/outside.so"; do
    sed "s|@PLUGIN@|$plugin|" "$source/tests/install/outside.yaml.in" \
        >"$work/outside.yaml"
    "$prefix/bin/lockstep" check "$work/outside.yaml"
done
"$prefix/bin/lockstep" check "$prefix/share/lockstep/configs/cartpole.yaml"
