"""MemEFS for Spack. It is built from this working copy, as docs/how-to/install.md says."""
from spack.package import *

try:  # build systems are in a repository of their own since Spack 1.0
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass


class Memefs(CMakePackage):
    """Elastic, network-aware file system in the memory of the nodes that run a workflow."""

    license("Apache-2.0")

    version("0.1.0")

    depends_on("c", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("uthash", type="build")
    depends_on("cjson")
    depends_on("curl")
    depends_on("expat")
    depends_on("libmicrohttpd")
    depends_on("hiredis@0.14.1:")
    depends_on("libfuse@3.14:")
    depends_on("ncurses+termlib")
    depends_on("openssl@3:")
    depends_on("xxhash")
    depends_on("zlib-api")
    depends_on("redis@7:", type="run")  # lm calls redis-server by its name
    depends_on("cmocka", type="test")

    def setup_run_environment(self, env):
        """lm finds redis-server by PATH."""
        env.prepend_path("PATH", self.spec["redis"].prefix.bin)
