#!/usr/bin/env bash
# Builds the packages on each release of Debian, installs them where nothing else is, tries them, and removes them.
#   tests/packages_test.sh bookworm trixie      as root; `make test-packages` does it
# The roots in which they are built stay in build/roots, so that the next time is quick.
set -euo pipefail

# What is tried, inside such a root.
try() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -qq -y --no-install-recommends ./build/lethe_*.deb > /dev/null
  lethe version
  lethe demo --events 20000 > /dev/null
  lethe check --help > /dev/null
  # By the names that systemd, man and bash look for.
  dpkg --listfiles lethe > /tmp/files
  for file in /usr/bin/lethe /usr/lib/systemd/system/lethe{,@}.service /usr/share/man/man1/lethe.1.gz \
    /usr/share/bash-completion/completions/lethe /usr/share/lethe/{lethe.schema.json,dashboards/overview.json} \
    /usr/share/doc/lethe/{examples/lethe.yaml,CHANGELOG.md,copyright}; do
    grep -qx "$file" /tmp/files || { echo "the package has no $file" >&2; exit 1; }
  done
  bash -c 'source /usr/share/bash-completion/completions/lethe && complete -p lethe' > /dev/null
  apt-get install -qq -y --no-install-recommends systemd ./build/liblethe1_*.deb ./build/liblethe-dev_*.deb > /dev/null
  systemd-analyze verify --man=no /usr/lib/systemd/system/lethe.service lethe@orders.service
  mkdir -p /var/lib/private/lethe /var/lib/private/lethe-orders
  apt-get purge -qq -y lethe liblethe1 liblethe-dev > /dev/null
  left=$(find / -xdev -path /lethe -prune -o -path /proc -prune -o -path /tmp -prune -o -iname '*lethe*' -print)
  [ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
  echo "built, installed, tried and removed: $(cd build && echo *.deb)"
}

cd "$(dirname "$0")/.."
if [ "$1" = --try ]; then
  try
  exit
fi
mkdir -p build/roots
for release in "$@"; do
  ROOT=build/roots/$release tests/debian.sh "$release" 'rm -f build/*.deb; make deb > build.log 2>&1 || { tail -n 40 build.log; exit 1; }'
  bare=$(mktemp -d "${TMPDIR:-/var/tmp}/lethe-bare.XXXXXX")
  trap 'rm -rf --one-file-system "$bare"' EXIT
  chmod 755 "$bare"
  mkdir -p "$bare/lethe/build"
  cp build/roots/"$release"/lethe/build/*.deb "$bare/lethe/build/"
  ROOT=$bare INCLUDE=ca-certificates tests/debian.sh "$release" 'tests/packages_test.sh --try'
  rm -rf --one-file-system "$bare"
done
