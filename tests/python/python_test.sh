#!/bin/sh
# Builds the wheel, installs it into a new venv and tests it there, with a broker: python_test.sh BUILD VERSION FOLDER
set -eu
build=$1 version=$2 folder=$3
sources=$(cd "$(dirname "$0")/../.." && pwd)
rm -rf "$folder"
"$sources/.ci/wheel" "$build" "$version" "$folder/wheel"
# NumPy and cffi are Debian's, so that no network is asked.
/usr/bin/python3 -m venv --system-site-packages --without-pip "$folder/venv"
python=$folder/venv/bin/python
"$python" -m pip --quiet --disable-pip-version-check install --no-index --no-deps "$folder"/wheel/lethe-*.whl
cd "$folder"
"$python" -B "$sources/tests/python/lethe_test.py" "$sources/connectors/python/README.md" "$version"
"$build/tests/with_kafka" -- "$python" -B "$sources/tests/python/consumer_test.py" {} \
  "$sources/connectors/python/examples/deduplicate.py"
