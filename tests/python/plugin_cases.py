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


def test_wrong_marks(pytester):
    for mark in ('limit_gpu_memory("2 apples")', "limit_gpu_memory()", 'limit_gpu_leak(-1)',
                 'limit_gpu_memory(1, metric="reserved")', "limit_gpu_leak(1, metric='requested')"):
        pytester.makepyfile(f"import pytest\n@pytest.mark.{mark}\ndef test_it(): pass\n")
        result = run(pytester, "--memtrace-dry-run=never")
        assert result.ret == 4, mark
        assert mark.split("(", maxsplit=1)[0] in result.stderr.str(), mark


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
