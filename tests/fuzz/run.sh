#!/usr/bin/env bash
# Runs each fuzz target of build/fuzz on the corpus beside this file, and on new inputs for some seconds.
#   tests/fuzz/run.sh [SECONDS-EACH [AT-ONCE]]
# Ends with 1 if one fails. The input that it failed on is kept in build/fuzz/, and named.
set -uo pipefail
cd "$(dirname "$0")/../../build/fuzz" || exit 1
seconds=${1:-10}
corpora=../../tests/fuzz/corpus

# Inputs that it finds stay in build/fuzz/corpus, and are where it begins the next time.
fuzz() {
  local name=$1 log=$1.log
  mkdir -p "corpus/$name"
  if "tests/fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix="$name-" "corpus/$name" "$corpora/$name" > "$log" 2>&1; then
    echo "$name: passed, $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs"
  else
    echo "$name: FAILED; the end of build/fuzz/$log:"
    tail -n 40 "$log" | cut -c -400
    return 1
  fi
}
export -f fuzz
export seconds corpora

# Each has a corpus, so that none begins at nothing.
targets=()
for source in ../../tests/fuzz/*_fuzz.cc; do
  name=$(basename "$source" .cc)
  [ -d "$corpora/$name" ] || { echo "tests/fuzz/corpus/$name: is not there"; exit 1; }
  targets+=("$name")
done
printf '%s\n' "${targets[@]}" | xargs -P "${2:-1}" -I{} bash -c 'fuzz {}' || exit 1
