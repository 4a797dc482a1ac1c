# cffi makes it (native_build.py); its objects have no types that a checker could know.
from typing import Any

ffi: Any
lib: Any
