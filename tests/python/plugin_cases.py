"""plugin_cases.py: the pytest plugin, in pytest processes of its own. Without a GPU, tests with a
limit run in a dry run. check_libraries.py starts it with a Python that has PyTorch and pytest."""
import re

pytest_plugins = ["pytester"]

LIMITS = """
    import pytest

    kept = []

    def ones(mib):
        import torch
        return torch.ones(mib, 1 << 18, device="cuda")

    @pytest.mark.limit_gpu_memory("10 MiB")
    def test_fits():
        ones(10)

    @pytest.mark.limit_gpu_memory("10 MiB")
    def test_exceeds():
        ones(5), ones(6)

    @pytest.mark.limit_gpu_memory("10 MiB")
    def test_one_after_the_other():
        ones(9)
        ones(9)

    @pytest.mark.limit_gpu_leak("1 MiB")
    def test_leaves():
        kept.append(ones(2))

    @pytest.mark.limit_gpu_leak(0)
    def test_leaves_a_cycle():
        cycle = [ones(2)]
        cycle.append(cycle)

    @pytest.mark.limit_gpu_memory(1)
    @pytest.mark.parametrize("how", ["skip", "xfail"])
    def test_ends_early(how):
        getattr(pytest, how)("no reason")

    @pytest.mark.limit_gpu_memory("1 GiB", metric="allocated")
    def test_value():
        assert ones(1).sum().item() == 12345.678

    def test_plain():
        pass
"""


def run(pytester, *words):
    return pytester.runpytest_subprocess("-p", "memtrace.pytest_plugin", *words)


def test_limits_in_a_dry_run(pytester):
    pytester.makepyfile(LIMITS)
    result = run(pytester, "-rA")
    result.assert_outcomes(passed=4, failed=3, skipped=1, xfailed=1)
    text = result.stdout.str()
    assert "GPU memory: 11.0 MiB (11534336 B) requested at the peak of device 0, more than the " \
           "limit of 10.0 MiB" in text
    assert "GPU memory: the test left 2.00 MiB (2097152 B) requested on device 0" in text
    assert "values are meaningless" in text  # test_value
    found = {name: row for row, name in re.findall(r"^ *(.*): \S*::(\S+)$", text, re.MULTILINE)}
    assert found["test_fits"] == "10.0 MiB requested, limit 10.0 MiB, simulated"
    assert found["test_one_after_the_other"] == "9.00 MiB requested, limit 10.0 MiB, simulated"
    assert found["test_leaves"] == "2.00 MiB requested, 2.00 MiB left, simulated"
    assert "test_plain" not in found
    assert not (pytester.path / "memtrace-traces").exists()


def test_traces_of_failing_tests(pytester):
    pytester.makepyfile(LIMITS)
    result = run(pytester, "--memtrace", "--memtrace-dir=kept", "-k",
                 "fits or exceeds or leaves or early")
    result.assert_outcomes(passed=2, failed=2, skipped=1, xfailed=1)
    names = sorted(path.name for path in (pytester.path / "kept").iterdir())
    file = "test_traces_of_failing_tests.py"
    assert names == [f"{file}-test_exceeds.trace.zst", f"{file}-test_leaves.trace.zst"]
    text = result.stdout.str()
    assert re.search(r"11.0 MiB .* ones \S+\.py:7", text)  # the site that holds the peak
    assert "run pytest with --memtrace" not in text


HARD = """
    import pytest, unittest

    def ones(mib):
        import torch
        return torch.ones(mib, 1 << 18, device="cuda")

    @pytest.mark.xfail
    @pytest.mark.limit_gpu_memory("1 MiB")
    def test_known_to_exceed():
        ones(2)

    class TestCase(unittest.TestCase):
        @pytest.mark.limit_gpu_memory("1 GiB")
        def test_fails(self):
            ones(1)
            self.fail("for another reason")

    @pytest.mark.limit_gpu_memory("1 GiB")
    def test_records(tmp_path):
        import memtrace
        ones(1)
        with memtrace.record(tmp_path / "own.trace.zst", method="pytorch-history", quiet=True):
            ones(1)

    @pytest.fixture
    def elsewhere(tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

    @pytest.mark.limit_gpu_memory("1 MiB")
    @pytest.mark.parametrize("name", ["a/b", "a-b", "a b"])
    def test_similar_names(name, elsewhere):
        ones(2)

    @pytest.mark.limit_gpu_memory("1 MiB")
    def test_property(record_property):
        record_property("a set has no JSON", {1})
"""


def test_failures_that_are_hard_to_see(pytester):
    pytester.makepyfile(HARD)
    result = run(pytester, "--memtrace", "--memtrace-dir=kept")
    result.assert_outcomes(passed=2, failed=4, xfailed=1)
    names = sorted(path.name for path in (pytester.path / "kept").iterdir())
    file = re.escape("test_failures_that_are_hard_to_see.py")
    expected = [rf"{file}-TestCase-test_fails", rf"{file}-test_similar_names-a-b",
                rf"{file}-test_similar_names-a-b-\w{{12}}", rf"{file}-test_similar_names-a-b-\w{{12}}"]
    assert len(names) == len(expected), names
    for pattern in expected:
        assert any(re.fullmatch(rf"{pattern}\.trace\.zst", name) for name in names), names
    # Relative paths, and each trace once.
    assert sorted(re.findall(r"^ +kept/(\S+)$", result.stdout.str(), re.MULTILINE)) == names


def test_fixtures_of_two_modules(pytester):
    """pytest leaves fixtures of a module for a test that runs in the other process."""
    pytester.makepyfile(test_first="""
        import pytest

        @pytest.fixture(scope="module")
        def shared():
            yield
            raise RuntimeError("the fixture ends")

        def test_plain(shared): pass

        @pytest.mark.limit_gpu_memory("1 MiB")
        def test_limit(): pass
    """, test_second="def test_plain(): pass\n")
    result = run(pytester)
    result.assert_outcomes(passed=3, errors=1)
    assert "the fixture ends" in result.stdout.str()


def test_options_of_the_parent(pytester):
    """The dry run shares neither the folder nor the report, and runs all its tests."""
    pytester.makepyfile("""
        import pathlib, pytest

        def test_makes(tmp_path_factory):
            tmp_path_factory.getbasetemp().joinpath("kept").touch()

        @pytest.mark.limit_gpu_memory("1 MiB")
        @pytest.mark.parametrize("number", [1, 2])
        def test_limit(number, tmp_path):
            assert number == 2

        def test_finds(tmp_path_factory):
            assert tmp_path_factory.getbasetemp().joinpath("kept").exists()
            assert not pathlib.Path("report.xml").exists()
    """)
    result = run(pytester, f"--basetemp={pytester.path / 'base'}", "--junitxml=report.xml",
                 "--maxfail=2", "--", "test_options_of_the_parent.py")
    result.assert_outcomes(passed=3, failed=1)
    assert (pytester.path / "report.xml").read_text().count("<testcase") == 4


def test_workers_of_xdist(pytester):
    """They share one dry run, which has no workers."""
    pytester.makepyfile("""
        import os, pytest

        def ones(mib):
            import torch
            return torch.ones(mib, 1 << 18, device="cuda")

        @pytest.mark.xdist_group("group")
        @pytest.mark.limit_gpu_memory("1 MiB")
        @pytest.mark.parametrize("mib", [1, 2])
        def test_group(mib):
            with open("runs", "a") as file:
                file.write(f"{os.getpid()} ")
            ones(mib)

        @pytest.mark.limit_gpu_memory("1 MiB")
        def test_one():
            ones(1)

        def test_plain(worker_id):
            assert worker_id.startswith("gw")
    """)
    for distribution in ("load", "loadgroup"):
        result = run(pytester, "-n", "2", "--dist", distribution)
        result.assert_outcomes(passed=3, failed=1)
        assert re.search(r"^ *2.00 MiB requested, limit 1.00 MiB, simulated: ", result.stdout.str(), re.MULTILINE)
        processes = (pytester.path / "runs").read_text().split()
        assert len(processes) == 2 and len(set(processes)) == 1
        (pytester.path / "runs").unlink()


def test_wrong_marks(pytester):
    for mark in ('limit_gpu_memory("2 apples")', "limit_gpu_memory()", 'limit_gpu_leak(-1)',
                 'limit_gpu_memory(1, metric="reserved")', "limit_gpu_leak(1, metric='requested')"):
        pytester.makepyfile(f"import pytest\n@pytest.mark.{mark}\ndef test_it(): pass\n")
        result = run(pytester, "--memtrace-dry-run=never")
        assert result.ret == 4, mark
        assert mark.split("(", maxsplit=1)[0] in result.stderr.str(), mark


def test_an_allocator_without_the_counters(pytester):
    """Its requested bytes are always zero, so the limit would never fail."""
    pytester.makeconftest("""
        import sys, types
        cuda = types.SimpleNamespace(
            is_initialized=lambda: True, device_count=lambda: 1, reset_peak_memory_stats=lambda device: None,
            get_allocator_backend=lambda: "cudaMallocAsync",
            memory_stats=lambda device: {"allocated_bytes.all.peak": 2 << 20})
        sys.modules["torch"] = types.ModuleType("torch")
        sys.modules["torch"].cuda = cuda
    """)
    pytester.makepyfile("""
        import pytest

        @pytest.mark.limit_gpu_memory("1 GiB")
        def test_requested(): pass

        @pytest.mark.limit_gpu_memory("1 GiB", metric="allocated")
        def test_allocated(): pass

        @pytest.mark.limit_gpu_memory("1 MiB", metric="allocated")
        def test_exceeds(): pass

        def test_plain(): pass
    """)
    result = run(pytester, "--memtrace-dry-run=never")
    result.assert_outcomes(passed=2, failed=2)
    assert "PyTorch does not count requested bytes with the allocator 'cudaMallocAsync': use metric='allocated'" \
        in result.stdout.str()


def test_never_without_a_gpu(pytester):
    pytester.makepyfile("""
        import os, pytest
        @pytest.mark.limit_gpu_memory(1)
        def test_it():
            assert "memtrace" not in os.environ.get("LD_PRELOAD", "")
    """)
    run(pytester, "--memtrace-dry-run=never").assert_outcomes(passed=1)


def test_a_dry_run_that_fails(pytester, monkeypatch):
    pytester.makepyfile("import pytest\n@pytest.mark.limit_gpu_memory(1)\ndef test_it(): pass\n")
    monkeypatch.setenv("MEMTRACE_PROGRAM", "/bin/false")
    result = run(pytester)
    result.assert_outcomes(failed=1)
    assert "did not run on a simulated GPU: pytest ended there with status 1" in result.stdout.str()
