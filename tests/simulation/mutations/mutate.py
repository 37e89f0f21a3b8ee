"""Writes the sources that list.txt names with their mistakes in them: mutate.py SOURCE OUTPUT.

With --files it only prints their names, and with --header the table of mistakes as a C++ header."""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent


def mistakes():
    text = (HERE / "list.txt").read_text()
    pattern = r"^@ (\S+)(?: (\d+))?\n([^\n]*)\n(\S+)\n<<<\n(.*?)\n===\n(.*?)\n>>>$"
    return re.findall(pattern, text, re.MULTILINE | re.DOTALL)


def main():
    if sys.argv[1] == "--files":
        print(";".join(sorted({path for _, _, _, path, _, _ in mistakes()})), end="")
        return
    source, output = map(pathlib.Path, sys.argv[1:3])
    texts = {}
    lines = []
    for name, seeds, why, path, before, after in mistakes():
        text = texts.setdefault(path, (source / path).read_text())
        if text.count(before) != 1:
            sys.exit(f"{path}: the text of mistake {name} is there {text.count(before)} times, not once:\n{before}")
        texts[path] = text.replace(before, after.replace("MUTATED", f'::lethe::simulation::IsMutated("{name}")'))
        lines.append(f'    {{"{name}", "{why}", {seeds or 20_000}}},\n')
    for path, text in texts.items():
        place = output / path
        write(place, f'#include "tests/simulation/mutations/mutated.h"\n#line 1 "{source / path}"\n{text}')
    write(output / "mutations.inc", "".join(lines))


def write(place, text):
    """What has not changed is not compiled again."""
    if place.exists() and place.read_text() == text:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


main()
