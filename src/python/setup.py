"""Compiles the module that calls libmemefs: memefs/_native, by cffi, for every Python from 3.10 on (abi3).

libmemefs is found by pkg-config, or, before it is installed, in the build that $MEMEFS_BUILD names, an absolute path.
"""

from setuptools import setup

setup(
    cffi_modules=["native_build.py:ffi"],
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
