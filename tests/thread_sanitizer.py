"""What tests do differently in a build with ThreadSanitizer (cmake --preset tsan)."""
import re
import subprocess


def runtime_of(library):
    """The runtime of ThreadSanitizer that the library is linked to, None without it. A program that
    was built without ThreadSanitizer has to preload it before it loads such a library."""
    # ldd fails for a library of another machine (packaging/aarch64), which has no ThreadSanitizer.
    needed = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=False).stdout
    found = re.search(r"=> (\S*/libtsan\S*)", needed)
    return found and found.group(1)


def preload(library):
    """The environment variable that does so."""
    runtime = runtime_of(library)
    return {"LD_PRELOAD": runtime} if runtime else {}
