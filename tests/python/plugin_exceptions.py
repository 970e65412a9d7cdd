"""plugin_exceptions.py: the pytest plugin while tests and what it uses fail: the outcome of a test and
the exit status are those of pytest without it. PyTorch is a stand-in, so these cases need no GPU."""
import os
import pathlib
import sys

import pytest

pytest_plugins = ["pytester"]
CAPTURE = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "captures" / "seq2seq.pickle.zst"
CONFTEST = f"""
    import shutil, sys, types
    torch = types.ModuleType("torch")
    class Memory:
        is_on = False
        def _record_memory_history(self, enabled="all", **options): Memory.is_on = enabled is not None
        def _dump_snapshot(self, path): shutil.copyfile({str(CAPTURE)!r}, path)
    torch.cuda = types.SimpleNamespace(
        memory=Memory(), is_initialized=lambda: True, device_count=lambda: 1,
        reset_peak_memory_stats=lambda device: None, get_allocator_backend=lambda: "native",
        memory_stats=lambda device: {{"requested_bytes.all.peak": 5, "requested_bytes.all.current": 5}})
    torch._C = types.SimpleNamespace(_cuda_isHistoryEnabled=lambda: Memory.is_on)
    sys.modules["torch"] = torch
    def pytest_unconfigure():
        print("history is", "on" if Memory.is_on else "off")
"""


def run(pytester, *words, conftest=""):
    """Runs the tests of the folder; PyTorch's history must be off afterwards."""
    pytester.makeconftest(CONFTEST + conftest)
    result = pytester.runpytest_subprocess("-p", "memtrace.pytest_plugin", "--memtrace-dry-run=never", *words)
    assert "history is off" in result.stdout.str()
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    return result


def names(pytester, folder="memtrace-traces"):
    path = pytester.path / folder
    return sorted(entry.name for entry in path.iterdir()) if path.exists() else []


def test_how_a_test_ends(pytester):
    """The same outcomes and status with the plugin, and a trace of each test that fails."""
    pytester.makepyfile(test_it="""
        import pytest

        @pytest.fixture
        def bad_setup(): raise RuntimeError("of the setup")

        @pytest.fixture
        def bad_teardown():
            yield
            raise RuntimeError("of the teardown")

        def test_setup(bad_setup): pass
        def test_teardown(bad_teardown): pass
        def test_raises(): raise KeyError("of the test")
        def test_system_exit(): raise SystemExit(3)
        def test_host_memory(): raise MemoryError("of the test")
        def test_passes(): pass
    """)
    for words in ((), ("-p", "no:xdist")):
        result = run(pytester, "--memtrace", *words)
        result.assert_outcomes(passed=2, failed=3, errors=2)
        assert result.ret == 1
        assert names(pytester) == [f"test_it.py-test_{name}.trace.zst"
                                   for name in ("host_memory", "raises", "system_exit")]
        assert "KeyError: 'of the test'" in result.stdout.str()


@pytest.mark.parametrize("statement, status", [
    ("raise KeyboardInterrupt", 2), ("pytest.exit('enough', returncode=7)", 7)])
def test_the_session_ends(pytester, statement, status):
    pytester.makepyfile(f"import pytest\ndef test_it(): {statement}\n")
    assert run(pytester, "--memtrace").ret == status
    assert names(pytester) == []


@pytest.mark.parametrize("fault", ["OSError(28, 'No space left on device')", "ValueError('of pickle')"])
def test_no_trace_can_be_written(pytester, fault):
    pytester.makepyfile("def test_raises(): raise KeyError('of the test')\ndef test_passes(): pass\n")
    result = run(pytester, "--memtrace", conftest=f"""
    def fails(self, path):
        open(path, "w").write("half")
        raise {fault}
    Memory._dump_snapshot = fails
    """)
    result.assert_outcomes(passed=1, failed=1)
    assert "KeyError: 'of the test'" in result.stdout.str()
    assert "no trace: PyTorch cannot write its history" in result.stdout.str()
    assert names(pytester) == []


def test_without_the_program(pytester, monkeypatch):
    monkeypatch.setenv("MEMTRACE_PROGRAM", "/nowhere/memtrace")
    pytester.makepyfile(test_it="def test_raises(): raise KeyError('of the test')\n")
    result = run(pytester, "--memtrace")
    result.assert_outcomes(failed=1)
    assert "KeyError: 'of the test'" in result.stdout.str()
    (snapshot,) = names(pytester)
    assert snapshot.endswith(".pickle") and f"the snapshot is '{pytester.path}" in result.stdout.str()


def test_counters_fail_after_an_error_of_the_device(pytester):
    pytester.makepyfile("""
        import pytest

        def broken(device): raise RuntimeError("device-side assert")

        @pytest.mark.limit_gpu_memory("1 GiB")
        def test_breaks():
            import torch
            torch.cuda.memory_stats = torch.cuda.reset_peak_memory_stats = broken
            raise KeyError("of the test")

        @pytest.mark.limit_gpu_memory("1 GiB")
        def test_limit(): pass

        def test_plain(): pass
    """)
    result = run(pytester, "--memtrace")
    result.assert_outcomes(passed=1, failed=2)
    text = result.stdout.str()
    assert "KeyError: 'of the test'" in text
    assert "GPU memory could not be measured: device-side assert" in text


def test_two_runs_in_one_process(pytester):
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_it="def test_raises(): raise KeyError('of the test')\n")
    pytester.path.joinpath("twice.py").write_text(
        "import pytest, sys\n"
        "words = ['-p', 'memtrace.pytest_plugin', '--memtrace', '--memtrace-dry-run=never', 'test_it.py']\n"
        "sys.exit(10 * pytest.main(words) + pytest.main(words))\n", encoding="utf-8")
    result = pytester.run(sys.executable, "twice.py")
    assert result.ret == 11
    assert names(pytester) == ["test_it.py-test_raises.trace.zst"]
    assert result.stdout.str().count("history is off") == 2


@pytest.mark.parametrize("program, reason", [
    ("no program", "Exec format error"),
    ("#!/bin/sh\nfor word; do case $word in --memtrace-reports=*) printf '{\"half' >${word#*=};; esac; done\nexit 9\n",
     "pytest ended there with status 9")])
def test_a_dry_run_without_whole_reports(pytester, monkeypatch, program, reason):
    path = pytester.path / "program"
    path.write_text(program, encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("MEMTRACE_PROGRAM", str(path))
    pytester.makepyfile("import pytest\n@pytest.mark.limit_gpu_memory(1)\ndef test_it(): pass\n"
                        "def test_plain(): pass\n")
    result = pytester.runpytest_subprocess("-p", "memtrace.pytest_plugin", "--memtrace-dry-run=always")
    result.assert_outcomes(passed=1, failed=1)
    assert "did not run on a simulated GPU" in result.stdout.str() and reason in result.stdout.str()
    assert not [name for name in os.listdir(pytester.path) if "unfinished" in name]
