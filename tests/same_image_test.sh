#!/usr/bin/env bash
# Builds an image a second time, and fails if it is another: tests/same_image_test.sh IMAGE VERSION ARCHITECTURE
# As root, after `.ci/image IMAGE VERSION ARCHITECTURE`; `make test-image` does it.
set -euo pipefail
cd "$(dirname "$0")/.."

# Of what a registry would get.
digest() {
  buildah push --quiet --digestfile "$work/digest" "$1" "oci:$work/$2" > /dev/null
  cat "$work/digest"
}

work=$(mktemp -d "${TMPDIR:-/var/tmp}/lethe-same-image.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
again=${1%:*}:again
.ci/image "$again" "$2" "$3"
first=$(digest "$1" first) second=$(digest "$again" second)
if [ "$first" != "$second" ]; then
  echo "two builds differ: $first and $second" >&2
  for build in first second; do
    mkdir "$work/$build.root"
    for layer in "$work/$build"/blobs/sha256/*; do tar -xzf "$layer" -C "$work/$build.root" 2> /dev/null || true; done
  done
  diff -r --no-dereference "$work"/{first,second}.root >&2 || true
  exit 1
fi
buildah rmi "$again" > /dev/null
echo "two builds are one image: $first, $(du -sm --apparent-size "$work/first" | cut -f 1) MB packed"
