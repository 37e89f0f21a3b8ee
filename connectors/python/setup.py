"""Built by `make wheel`, which puts the libraries into lethe/native first."""

import os
import pathlib
import platform

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel


class Native(Distribution):
    def has_ext_modules(self) -> bool:
        return True


class Wheel(bdist_wheel):
    """For any Python 3, and for systems whose C library is as new as this one's."""

    def get_tag(self) -> tuple[str, str, str]:
        _, libc = platform.libc_ver()
        return "py3", "none", f"manylinux_{libc.replace('.', '_')}_{platform.machine()}"


setup(
    name="lethe",
    version=os.environ["LETHE_VERSION"],
    description="Stream deduplication: filters that forget, and the program lethe",
    long_description=pathlib.Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.9",
    install_requires=["cffi>=1.15", "numpy>=1.24"],
    packages=["lethe"],
    package_data={"lethe": ["py.typed", "native/*"]},
    entry_points={"console_scripts": ["lethe = lethe.__main__:main"]},
    distclass=Native,
    cmdclass={"bdist_wheel": Wheel},
)
