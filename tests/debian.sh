#!/usr/bin/env bash
# Runs a command in this tree on a release of Debian, in a root of its own with nothing but git and make, or the
# packages that INCLUDE names.
#   tests/debian.sh trixie 'make demo && make test'
# ROOT=FOLDER keeps that root, and uses it again; without it a temporary one is removed at the end. MIRROR=URL
# is where Debian's packages come from; without it, from where this machine has its own. For root, on Debian.
set -euo pipefail

# Mounts in a namespace of our own end with it, however it ends; and so do the processes.
if [ "${1:-}" != --inside ]; then
  exec unshare --mount --pid --fork --kill-child "$0" --inside "$@"
fi
release=$2 command=$3
tree=$(cd "$(dirname "$0")/.." && pwd)

mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)}
if [ -z "$mirror" ]; then
  echo "debian.sh: no mirror of Debian among this machine's sources; give one: MIRROR=URL" >&2
  exit 1
fi

if [ -z "${ROOT:-}" ]; then
  root=$(mktemp -d "${TMPDIR:-/var/tmp}/lethe-$release.XXXXXX")
  # Never across a mount: /dev is this machine's.
  trap 'rm -rf --one-file-system "$root"' EXIT
else
  mkdir -p "$ROOT"
  root=$(cd "$ROOT" && pwd)
fi

if [ ! -e "$root/debootstrapped" ]; then
  debootstrap --variant=minbase --include=${INCLUDE:-ca-certificates,git,make} $release "$root" "$mirror" > "$root.log" ||
    { tail -n 20 "$root.log" >&2; exit 1; }
  rm "$root.log"
  touch "$root/debootstrapped"
fi
cp /etc/hosts /etc/resolv.conf "$root/etc/"
# A network may have a certificate authority of its own, which the clients of registries have to trust.
find /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$root/usr/local/share/ca-certificates" {} +
chroot "$root" update-ca-certificates > /dev/null

mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"

# The files of the tree as they are, without what is built. An earlier build in there stays.
mkdir -p "$root/lethe"
find "$root/lethe" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
cd "$tree"
git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  tar -c --null -T - | tar -x -C "$root/lethe"

echo "lethe on $(. "$root/etc/os-release" && echo "$PRETTY_NAME"): $command"
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 ${CI:+CI=$CI} \
  bash -c "cd /lethe && $command"
