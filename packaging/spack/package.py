# A recipe for Spack 1.0 and later: copy it to a repository as packages/memtrace/package.py.
from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Memtrace(CMakePackage):
    """Records the GPU memory allocations of unchanged CUDA programs and explains their peak."""

    homepage = "https://example.org/memtrace"
    url = "file:///path/to/memtrace_gpu-0.1.0.tar.gz"

    license("Apache-2.0 AND OFL-1.1")

    # The release has no checksum yet: use `spack install --no-checksum`, or `spack dev-build`.
    version("0.1.0")

    variant("cairo", default=True, description="PNG pictures")
    variant("libdw", default=True, description="names of native frames")
    variant("ncurses", default=True, description="memtrace view")
    variant("sqlite", default=True, description="memtrace sql and export sqlite")
    variant("mpi", default=False, description="fleet over MPI")

    depends_on("c", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("zstd@1.4:")
    depends_on("zlib-api")
    depends_on("cairo@1.14:", when="+cairo")
    depends_on("elfutils@0.170:", when="+libdw")
    depends_on("ncurses@6.1:", when="+ncurses")
    depends_on("sqlite@3.31:", when="+sqlite")
    depends_on("mpi", when="+mpi")

    def cmake_args(self):
        return [
            self.define("BUILD_TESTING", False),
            self.define_from_variant("MEMTRACE_CAIRO", "cairo"),
            self.define_from_variant("MEMTRACE_LIBDW", "libdw"),
            self.define_from_variant("MEMTRACE_NCURSES", "ncurses"),
            self.define_from_variant("MEMTRACE_SQLITE", "sqlite"),
            self.define_from_variant("MEMTRACE_MPI", "mpi"),
        ]
