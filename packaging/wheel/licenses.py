"""The licenses of what the wheel contains, as an SPDX expression and as texts.

The archives of Debian's packages, the startup code of glibc and the runtime of the compiler are in
the program. Each package has its terms here; a package without terms stops the build. The terms are
those of the code that is linked: tools and tests of a source package may have others.
"""
import os
import pathlib
import re
import shutil
import subprocess

COMMON_LICENSES = pathlib.Path("/usr/share/common-licenses")
PNG_HEADER = pathlib.Path("/usr/include/libpng16/png.h")

# Our code, and the outlines of letters in the program.
OWN = ("Apache-2.0", "OFL-1.1")

# The terms of each package. A recipient may choose between the sides of OR.
PACKAGES = {
    "libbrotli-dev": ("MIT",),
    "libbz2-dev": ("bzip2-1.0.6",),
    "libcairo2-dev": ("LGPL-2.1-only OR MPL-1.1",),
    "libdw-dev": ("GPL-2.0-or-later OR LGPL-3.0-or-later",),
    "libelf-dev": ("GPL-2.0-or-later OR LGPL-3.0-or-later",),
    "libexpat1-dev": ("MIT",),
    "libfontconfig-dev": ("HPND-sell-variant",),
    # The readers of BDF and PCF and the hash table have the license of the X Consortium.
    "libfreetype-dev": ("FTL OR GPL-2.0-or-later", "MIT"),
    "liblzma-dev": ("LicenseRef-Public-Domain",),
    "libncurses-dev": ("X11-distribute-modifications-variant",),
    "libpixman-1-dev": ("MIT",),
    # Debian's copyright file quotes an older license, so png.h is the source of the text.
    "libpng-dev": ("libpng-2.0",),
    "libsqlite3-dev": ("LicenseRef-Public-Domain",),
    "libzstd-dev": ("BSD-3-Clause OR GPL-2.0-only",),
    "zlib1g-dev": ("Zlib",),
}
# What every program that zig links contains: crt1.o and libc_nonshared.a of glibc, whose terms
# permit programs of any license, and functions of the compiler's runtime.
COMPILER = {"glibc-startup": ("LGPL-2.1-or-later WITH GCC-exception-2.0",), "zig": ("MIT",)}

SOURCES = """\
The programs and libraries in this wheel contain code of these source packages of Debian:

{packages}

They also contain the startup code of glibc 2.28 and the compiler's runtime, from ziglang {zig}.

The sources of a package are at https://snapshot.debian.org/package/NAME/VERSION/. The sources of
memtrace are in memtrace_gpu-{version}.tar.gz. In that file, packaging/wheel/build.py compiles
memtrace and links it with the archives of the system. To use changed libraries, install them and
run this script.

This software is based in part on the work of the FreeType Team (https://www.freetype.org).
"""


class LicenseError(Exception):
    """One line for the user."""


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def package_of(archive):
    """Returns the Debian package that installed the archive."""
    try:
        return output("dpkg", "-S", os.path.realpath(archive)).split(":")[0]
    except subprocess.CalledProcessError as error:
        raise LicenseError(f"{archive}: no Debian package contains it, so its terms are unknown; "
                           "install it as a package") from error


def source_of(package):
    """Returns the name and the version of the source package, as one text."""
    return output("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", package)


def expression(packages):
    """Returns the terms of all that a wheel with these packages contains, in the syntax of SPDX."""
    unknown = sorted(set(packages) - set(PACKAGES))
    if unknown:
        raise LicenseError(f"{', '.join(unknown)}: linked, but without terms; add them to "
                           "packaging/wheel/licenses.py")
    linked = {term for package in packages for term in PACKAGES[package]}
    linked |= {term for terms in COMPILER.values() for term in terms}
    terms = [*OWN, *sorted(linked - set(OWN))]
    return " AND ".join(f"({term})" if " OR " in term else term for term in terms)


def comment(path, words):
    """Returns the first comment of a C file that contains the words."""
    for text in re.findall(r"/\*.*?\*/", path.read_text(encoding="utf-8"), re.S):
        if words in text:
            return text + "\n"
    raise LicenseError(f"{path} has no comment with the words '{words}'")


def copy_common_licenses(folder):
    """Copies the licenses that the texts name instead of quoting: a system that is not Debian does
    not have them."""
    named = {"LGPL-2.1"}  # of the startup code of glibc
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8", errors="replace")
        named |= {name.rstrip(".") for name in re.findall(rf"{COMMON_LICENSES}/([\w.+-]+)", text)}
    for name in named:
        shutil.copyfile(COMMON_LICENSES / name, folder / name)


def copy_texts(packages, zig, folder):
    """Writes the license of each package and of what the compiler adds. zig is its folder."""
    folder.mkdir(parents=True)
    for package in packages:
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", folder / package)
    if "libpng-dev" in packages:
        text = comment(PNG_HEADER, "PNG Reference Library License version 2")
        (folder / "libpng-2.0").write_text(text)
    shutil.copyfile(zig / "LICENSE", folder / "zig")
    start = comment(zig / "lib/libc/glibc/csu/elf-init-2.33.c", "gives you unlimited")
    (folder / "glibc-startup").write_text(start)
    copy_common_licenses(folder)


def write_sources(packages, zig_version, version, path):
    """Writes which sources the linked code comes from, and how to link it again."""
    listed = "\n".join(f"- {line}" for line in sorted({source_of(package) for package in packages}))
    path.write_text(SOURCES.format(packages=listed, zig=zig_version, version=version))
