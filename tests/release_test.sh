#!/usr/bin/env bash
# Takes what is in a release as users would: release_test.sh DIST VERSION, as root; `make test-release` does it.
set -euo pipefail
dist=$(cd "$1" && pwd) version=$2
tests=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/var/tmp}/lethe-release.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT

(cd "$dist" && sha256sum --quiet --check SHA256SUMS && [ "$(ls | wc -l)" -eq $(($(wc -l < SHA256SUMS) + 1)) ])
for file in lethe_*.deb liblethe1_*.deb liblethe-dev_*.deb lethe-"$version"{.tgz,.tar.gz,.cdx.json} lethe-"$version"-py3-*.whl; do
  ls "$dist"/$file > /dev/null
done

# The program and the C library in a root that has nothing but the C library's files: no shell, no libstdc++.
root=$work/root
mkdir -p "$root/tmp" "$root/dev" "$root/proc"
# With /proc, by which a program knows its folder; the mount ends with the program.
in_root() { unshare --mount sh -c 'mount -t proc proc "$1/proc" && exec chroot "$@"' sh "$root" "$@"; }
tar -xzf "$dist/lethe-$version-linux-$(uname -m).tar.gz" -C "$root"
mv "$root/lethe-$version-linux-$(uname -m)" "$root/lethe"
for library in libc libm libdl librt libpthread libresolv; do
  path=$(ldconfig -p | awk -v name="$library.so" 'index($1, name) == 1 { print $NF; exit }')
  cp --dereference --parents "$path" "$root"
done
cp --dereference --parents "$(ldd /bin/true | grep -oE '/[^ ]*ld-linux[^ ]*')" "$root"
[ "$(in_root /lethe/lethe --version)" = "lethe $version" ]
in_root /lethe/lethe demo --events 20000
cc -std=c11 -I "$root/lethe/include" "$tests/../src/c/example.c" -o "$root/example" -L "$root/lethe/lib" \
  -l:liblethe.so.1 -Wl,-rpath,/lethe/lib -Wl,--allow-shlib-undefined
[ "$(printf 'a\nb\na\n' | in_root /example)" = "$(printf 'a\nb')" ]

# The chart stands alone, with the version of the program.
mkdir "$work/chart"
tar -xzf "$dist/lethe-$version.tgz" -C "$work/chart"
grep -q "^appVersion: \"$version\"$" "$work/chart/lethe/Chart.yaml"
[ -s "$work/chart/lethe/files/alerts.yml" ] && [ ! -L "$work/chart/lethe/files/alerts.yml" ]

# The sources are whole: they configure.
tar -xzf "$dist/lethe-$version.tar.gz" -C "$work"
cmake -S "$work/lethe-$version" -B "$work/build" -DLETHE_PROGRAM=OFF -DLETHE_TESTS=OFF > /dev/null
echo "release $version: tried"
