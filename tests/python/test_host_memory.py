"""What the host has left for memtrace.parked, on files as Linux has them."""
import os
import pathlib
import resource

import support
from memtrace import host_memory

GIB = 1 << 30


class Available(support.Case):
    def write(self, path, text):
        file = pathlib.Path(self.work, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def available(self):
        return host_memory.available(str(self.work))

    def setUp(self):
        super().setUp()
        self.write("proc/meminfo", f"MemTotal: {64 << 20} kB\nMemAvailable:   {32 << 20} kB\n")

    def test_the_machine(self):
        self.assertEqual(self.available(), (32 * GIB, "this machine"))

    def test_nothing_can_be_read(self):
        self.assertIsNone(host_memory.available(str(self.work / "missing")))

    def test_a_cgroup_above(self):
        """The limit of a parent also counts. Pages of files can be dropped."""
        self.write("proc/self/cgroup", "0::/job/step\n")
        self.write("sys/fs/cgroup/job/memory.max", f"{8 * GIB}\n")
        self.write("sys/fs/cgroup/job/memory.current", f"{7 * GIB}\n")
        self.write("sys/fs/cgroup/job/memory.stat", f"anon 5\ninactive_file {GIB}\nactive_file {GIB}\n")
        self.write("sys/fs/cgroup/job/step/memory.max", "max\n")
        self.write("sys/fs/cgroup/job/step/memory.current", f"{GIB}\n")
        self.assertEqual(self.available(), (3 * GIB, "the cgroup /job"))

    def test_a_container(self):
        """It sees its own folder at the top, and the path of the host."""
        self.write("proc/self/cgroup", "12:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n")
        self.write("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{4 * GIB}\n")
        self.write("sys/fs/cgroup/memory/memory.usage_in_bytes", f"{5 * GIB}\n")
        self.write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 7\ninactive_file 9\n")
        self.assertEqual(self.available(), (0, "the cgroup /"))

    def test_the_address_space(self):
        self.write("proc/self/statm", f"{GIB // os.sysconf('SC_PAGE_SIZE')} 1 1 1 0 1 0\n")
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (1 << 46, before[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_AS, before)
        self.write("proc/meminfo", f"MemAvailable: {1 << 38} kB\n")
        found = self.available()
        self.assertEqual(found[0], (1 << 46) - GIB)
        self.assertIn("ulimit -v", found[1])


if __name__ == "__main__":
    support.main()
