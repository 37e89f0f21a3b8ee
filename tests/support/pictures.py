#!/usr/bin/env python3
"""Pictures that know what they were drawn from: a PNG file carries the hash of it, in a text chunk.

pictures.py write PNG: after it was drawn from the sources of dashboards/PNG as they are now.
pictures.py check: exits with 1 if a picture of dashboards/ was drawn from others.
"""
import hashlib
import pathlib
import struct
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# What a picture shows besides figures: texts, the layout, and what moves the curves.
DRAWN = ["tests/support/dashboard_picture.cc", "tests/support/dashboard_answers.cc"]
SOURCES = {
    "dashboards/overview.png": ["dashboards/overview.json", *DRAWN],
    "dashboards/pipeline.png": ["dashboards/pipeline.json", *DRAWN],
    "dashboards/adaptation.png": ["dashboards/adaptation.json", *DRAWN, "src/adapt/step_reasons.h",
                                  "src/published/adaptive_fbf.cc", "src/cli/demo/demo_day.cc",
                                  "src/filter/compact_epochs.cc"],
    "dashboards/page.png": ["connectors/http/page.html", "src/adapt/step_reasons.h", "src/filter/compact_epochs.cc"],
}
KEYWORD = b"Drawn-From\0"
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def digest(parts):
    """Of texts, in order."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part.encode()).digest())
    return whole.hexdigest()


def sources_digest(name):
    return digest((ROOT / source).read_text(encoding="utf-8") for source in SOURCES[name])


def chunks(png):
    """Kind and content of each."""
    at = len(SIGNATURE)
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        yield kind, png[at + 8:at + 8 + length]
        at += 12 + length


def write(path, text):
    """Puts the text into the picture, in the place of an earlier one."""
    path = pathlib.Path(path)
    parts = []
    for kind, content in chunks(path.read_bytes()):
        if kind == b"tEXt" and content.startswith(KEYWORD):
            continue
        if kind == b"IEND":
            parts.append((b"tEXt", KEYWORD + text.encode()))
        parts.append((kind, content))
    path.write_bytes(SIGNATURE + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts))


def read(path):
    """The text in a picture; None if it has none."""
    for kind, content in chunks(pathlib.Path(path).read_bytes()):
        if kind == b"tEXt" and content.startswith(KEYWORD):
            return content[len(KEYWORD):].decode()
    return None


def main():
    if sys.argv[1] == "write":
        name = f"dashboards/{pathlib.Path(sys.argv[2]).name}"
        if name in SOURCES:
            write(sys.argv[2], sources_digest(name))
        return
    assert sys.argv[1] == "check"
    shown = {f"dashboards/{path.name}" for path in (ROOT / "dashboards").glob("*.png")}
    assert shown == set(SOURCES), shown.symmetric_difference(SOURCES)
    stale = [name for name in SOURCES if read(ROOT / name) != sources_digest(name)]
    for name in stale:
        print(f"{name} was not drawn from {', '.join(SOURCES[name])} as they are now")
    if stale:
        sys.exit("CONTRIBUTING.md says how pictures are drawn")


if __name__ == "__main__":
    main()
