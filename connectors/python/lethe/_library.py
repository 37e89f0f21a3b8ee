"""liblethe.so, by the declarations of lethe.h."""

import pathlib
import re

import cffi

_FOLDER = pathlib.Path(__file__).parent / "native"
PROGRAM = _FOLDER / "lethe"
ABI_VERSION = 1


def _declarations(header: str) -> str:
    header = re.sub(r"^#ifdef __cplusplus$.*?^#endif$", "", header, flags=re.DOTALL | re.MULTILINE)
    header = re.sub(r"^#.*$", "", header, flags=re.MULTILINE)
    return header.replace("LETHE_C_EXPORT ", "")


ffi = cffi.FFI()
ffi.cdef(_declarations((_FOLDER / "lethe.h").read_text(encoding="utf-8")))
lib = ffi.dlopen(str(_FOLDER / f"liblethe.so.{ABI_VERSION}"))

NO_TIME = -(2**63)
NO_LIMIT = 2**63 - 1
