#!/usr/bin/env bash
# Runs each fuzz target of build/fuzz on the corpus beside this file, and on new inputs for some seconds.
#   tests/fuzz/run.sh [SECONDS-EACH]
# What a target fails on is kept in build/fuzz/, and named at the end.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../build/fuzz"
code=0
for target in tests/fuzz/*_fuzz; do
  name=$(basename "$target")
  mkdir -p "corpus/$name"
  echo "$name"
  seeds=()
  if [ -d "$here/corpus/$name" ]; then seeds=("$here/corpus/$name"); fi
  "$target" -max_total_time="${1:-10}" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$name-" "corpus/$name" "${seeds[@]}" || code=1
done
exit $code
