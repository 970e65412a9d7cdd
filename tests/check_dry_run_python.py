#!/usr/bin/env python3
"""The Python part of a dry run (simulate/python), without PyTorch: a small fake takes its place.

What must hold whatever a program does: it starts and ends as it would have, the user's own sitecustomize
runs, notes are complete files, and a failure of the shim is counted and nothing more."""

import ast
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from pasted import pasted, variables  # noqa: E402

SHIM = pathlib.Path(__file__).resolve().parent.parent / "simulate" / "python"
FAKE_TORCH = '''
import warnings
__version__ = "2.99"
class version: cuda = %(cuda)r
def compile(model=None, **_): raise RuntimeError("Triton wants a device")
class cuda:
    class Event:
        def elapsed_time(self, other):
            if isinstance(other, str): warnings.warn(other, stacklevel=2)
            return %(ms)r
'''

# What the shim uses of Triton, and of PyTorch when it compiles.
FAKE_COMPILER = {
    "triton/__init__.py": "from . import runtime\n",
    "triton/backends/__init__.py": """
import dataclasses
@dataclasses.dataclass(frozen=True)
class Backend:
    compiler: object
    driver: object
backends = {"nvidia": Backend("compiler", "driver")}
""",
    "triton/runtime/__init__.py": "from . import jit\nfrom .driver import driver\n",
    "triton/runtime/driver.py": """
class Config:
    active = None
    def set_active(self, driver): self.active = driver
driver = Config()
""",
    "triton/runtime/jit.py": """
class JITFunction:
    arg_names = ["in_ptr0", "out_ptr0", "n"]
    src = '''
    def kernel(in_ptr0, out_ptr0, n):
        at = out_ptr0 + n
        for i in range(n): at += 1
        tl.store(at, tl.load(in_ptr0))
    '''
    def run(self, *_, **__): raise RuntimeError("no compiler")
    def warmup(self, *a, grid, **named): return self.run(*a, grid=grid, warmup=True, **named)
""",
    "triton/testing.py": "def nvsmi(attributes): return 'of a device'\n",
    "torch/__init__.py": """
__version__ = "2.99"
class version: cuda = None
class UntypedStorage:
    @staticmethod
    def _free_weak_ref(_): pass
class cuda:
    class Event:
        def elapsed_time(self, other): return 0.0
    @staticmethod
    def current_device(): return 1
    @staticmethod
    def get_device_properties(_):
        import types
        return types.SimpleNamespace(multi_processor_count=132, clock_rate=1980000, memory_clock_rate=3201000, memory_bus_width=6016)
    @staticmethod
    def get_device_capability(device=None): return (9, device)
class _C:
    on = True
    @staticmethod
    def _dispatch_tls_is_dispatch_key_included(_): return _C.on
    @staticmethod
    def _dispatch_tls_set_dispatch_key_included(_, on): _C.on = on
    @staticmethod
    def _dispatch_tls_set_dispatch_key_excluded(*_): pass
""",
    "torch/_inductor/__init__.py": "",
    "torch/_inductor/runtime/__init__.py": "",
    "torch/_inductor/runtime/triton_heuristics.py": """
import threading
class CachingAutotuner:
    def __init__(self, fn, configs): self.fn, self.configs, self.launchers, self.lock = fn, configs, [], threading.Lock()
    def precompile(self, *_, **__): raise RuntimeError("no compiler")
    def _precompile_config(self, config): raise RuntimeError("no compiler")
    def coordinate_descent_tuning(self, launcher): return self._precompile_config("neighbor").make_launcher()
""",
    "torch/_inductor/compile_fx.py": """
def compile_fx(model, settings=None):
    if model is None: raise ValueError("no model")
    return compile_fx(model) if settings else model
""",
    "torch/_inductor/fx_passes/__init__.py": "",
    "torch/_inductor/fx_passes/pad_mm.py": """
def realize_symbols(sizes): return list(sizes)
def is_padded_faster(key, without, padded): return without > padded * 1.1
def _should_pad(match, mat1, mat2, op, input=None): return is_padded_faster("key", 1.0, 1.0)
""",
    "torch/_dynamo/__init__.py": "",
    "torch/_dynamo/trace_rules.py": "left_out = []\nadd = left_out.append\n",
    "torch/_dynamo/convert_frame.py": """
import torch
class config: suppress_errors = False
class Unsupported(Exception): pass
class UserError(Unsupported): pass
class CheckFunctionManager:
    def __init__(self): self.on = torch._C.on
def _compile(error=None):
    if error: raise error
    return torch._C.on, CheckFunctionManager().on
""",
}


# torch.distributed, as far as one rank without the others replaces it
FAKE_DISTRIBUTED = '''
import sys, types
from torch import ops
def is_available(): return True
def is_gloo_available(): return True
class Store: pass
class HashStore(Store): pass
class TCPStore(Store):
    def __init__(self, *_): raise RuntimeError("waits for the other ranks")
FileStore = TCPStore
class ProcessGroup:
    _device_types = ("cpu",)
    def __init__(self, backend): self.backend = backend
    def _get_backend(self, device): return self.backend
    def rank(self): return getattr(self.backend, "of", (0, 1, 4))[1]
    def size(self): return getattr(self.backend, "of", (0, 1, 4))[2]
    def allreduce(self, tensors, options=None): return ops.kernels["allreduce_"](ops.Keys(), tensors, self, "boxed", None)
    @staticmethod
    def unbox(group): return group
class ProcessGroupGloo:
    def __init__(self, store, rank, size, timeout=None): self.of = type(store).__name__, rank, size, timeout
    def barrier(self): return types.SimpleNamespace(boxed=lambda: "the barrier's work")
class RedOp(str): pass
class ReduceOp:
    RedOpType, SUM, MAX, BXOR = RedOp, RedOp("SUM"), RedOp("MAX"), RedOp("BXOR")
def get_rank(group=None): return -1 if group == "of others" else 3
def get_backend(group=None): return "nccl" if group is None else "gloo"
calls = []
def monitored_barrier(group=None, timeout=None): calls.append(("monitored_barrier", group))
def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None): calls.append(("broadcast", src, group_src))
def scatter_object_list(output, input=None, src=None, group=None, group_src=None): calls.append(("scatter", src))
def recv_object_list(object_list, src=None, group=None): raise RuntimeError("waits for another rank")
def send_object_list(object_list, dst=None, group=None): calls.append(("send", dst))
def recv(tensor, src=None, group=None): calls.append(("recv", src, tensor))
def _verify_params_across_processes(group, tensors):
    from torch import Tensor
    got = [Tensor(0) for _ in range(8)]
    ops.kernels["allgather_"](ops.Keys(), [got], tensors, group)
    return [t.values for t in got]
all_gather_object = _verify_params_across_processes
class Reducer: _rebuild_buckets = staticmethod(_verify_params_across_processes)
def _create_process_group_wrapper(wrapped_pg, *_): raise RuntimeError("asks the other ranks")
distributed_c10d = sys.modules[__name__]
def new_gloo(): return ProcessGroupGloo("their store", 3, 8, timeout=5)
'''
FAKE_TENSORS = '''
import types
class Tensor:
    is_cuda, device, dtype = False, "cpu", "int64"
    def __init__(self, *values): self.values = list(values); self.shape = (len(values),)
    def numel(self): return len(self.values)
    def data_ptr(self): return id(self)
    def copy_(self, other): self.values[:] = other.values
    def double(self): return self
    def round(self): return Tensor(*[round(v) for v in self.values])
    def __mul__(self, factor): return Tensor(*[v * factor for v in self.values])
    def mul_(self, factor): self.values[:] = [v * factor for v in self.values]
    def view(self, *_): return self
    def chunk(self, count):
        n = len(self.values) // count
        return [_Part(self, i * n, n) for i in range(count)]
class _Part(Tensor):
    def __init__(self, whole, at, n): Tensor.__init__(self, *whole.values[at : at + n]); self.whole, self.at = whole, at
    def copy_(self, other): self.whole.values[self.at : self.at + len(other.values)] = other.values
class _Op:
    def __init__(self, name, kinds, returns):
        self._schema = types.SimpleNamespace(arguments=[types.SimpleNamespace(type=k) for k in kinds], returns=range(returns))
        self._handle = types.SimpleNamespace(redispatch_boxed=lambda keys, *a, **named: ran.append((name, a)) or (a[0], "work"))
ran, kernels = [], {}
bool, int32, int64 = "bool", "int32", "int64"
def _packet(name, *kinds): return types.SimpleNamespace(default=_Op(name, kinds, 2))
ops = types.SimpleNamespace(c10d=types.SimpleNamespace(
    allgather_=_packet("allgather_", "Tensor[][]", "Tensor[]", "ProcessGroup"), broadcast_=_packet("broadcast_", "Tensor[]", "ProcessGroup", "int", "int"),
    scatter_=_packet("scatter_", "Tensor[]", "Tensor[][]", "ProcessGroup", "int"), gather_=_packet("gather_", "Tensor[][]", "Tensor[]", "ProcessGroup", "int"),
    allreduce_=_packet("allreduce_", "Tensor[]", "ProcessGroup", "ReduceOp", "Tensor?"),
    _reduce_scatter_base_=_packet("_reduce_scatter_base_", "Tensor", "Tensor", "ProcessGroup", "ReduceOp"),
    alltoall_base_=_packet("alltoall_base_", "Tensor", "Tensor", "ProcessGroup", "int[]", "int[]")), _c10d_functional=types.SimpleNamespace(
    all_reduce=_packet("all_reduce", "Tensor", "str", "str")))
ops.kernels = kernels
class library:
    class Library:
        def __init__(self, *_): pass
        def impl(self, name, kernel, key, with_keyset): kernels[name] = kernel
class Keys:
    def remove(self, key): return self
ops.Keys = Keys
class _C: DispatchKey = types.SimpleNamespace(AutocastIPU="switched")
class UntypedStorage:
    @staticmethod
    def _free_weak_ref(_): pass
'''
# What rules need to know of tensors on the device, whose values are a dictionary here.
FAKE_SHADOWS = '''
from memtrace_dry_run import collectives, hooks, notes, shadows
import contextlib, types
hooks.Quiet = contextlib.nullcontext
class Shadow:
    def __init__(self, values, made): self.values, self.made = values, made
table = {}
class T(torch.Tensor): pass
def on_device(*values, known=True):
    t = torch.Tensor(*values); t.is_cuda = True
    if known: table[id(t)] = Shadow(torch.Tensor(*values), shadows.KNOWN)
    return t
shadows.of = lambda t: table.get(id(t))
shadows.view = lambda t, shadow: shadow.values
shadows.is_small = lambda t: True
shadows.forget = lambda t: table.pop(id(t), None)
def keep(t, values, made): table[id(t)] = Shadow(torch.Tensor(*values.values), made)
shadows.keep = keep
def known(t): return table[id(t)] and (table[id(t)].values.values, table[id(t)].made) if id(t) in table else None
group = dist.ProcessGroup("nccl")
def call(name, *arguments): return torch.kernels[name](torch.Keys(), *arguments)
'''


class Programs(unittest.TestCase):
    """Programs with a fake torch."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.torch()

    def torch(self, cuda=None, ms=0.0):
        (self.folder / "torch.py").write_text(FAKE_TORCH % {"cuda": cuda, "ms": ms})

    def compiler(self):
        (self.folder / "torch.py").unlink()
        for name, text in FAKE_COMPILER.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)

    def run_program(self, text, **environment):
        """(status, output, {process: notes})"""
        program = self.folder / "program.py"
        program.write_text(text)
        for old in self.folder.glob("notes.*"):
            old.unlink()
        done = subprocess.run(
            [sys.executable, "-B", str(program)], capture_output=True, text=True, check=False, cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SHIM), str(self.folder)]), "MEMTRACE_DRY_RUN": "1",
                 "MEMTRACE_DRY_RUN_NOTES": str(self.folder / "notes"), **environment})
        notes = {int(path.suffix[1:]): json.loads(path.read_text()) for path in self.folder.glob("notes.*")}
        return done.returncode, done.stdout + done.stderr, notes

    def only(self, notes):
        self.assertEqual(len(notes), 1, notes)
        return next(iter(notes.values()))


class Shim(Programs):
    def test_notes_that_cannot_be_written_are_empty(self):
        """As on a full disk. Old notes would pass for all that was made up."""
        notes = self.folder / "notes"
        program = f"""
import os, resource, signal, sys
sys.path.insert(0, {str(SHIM)!r})
from memtrace_dry_run import notes
notes.start({str(notes)!r})
notes.made_up("count")
assert os.path.getsize("{notes}.%d" % os.getpid())
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
usual = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, usual[1]))
notes.made_up("count", 100)
sys.exit(os.path.getsize("{notes}.%d" % os.getpid()))
"""
        done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_a_program_without_torch_runs_as_it_is(self):
        status, output, notes = self.run_program("import sys; print('torch' in sys.modules); sys.exit(7)")
        self.assertEqual((status, output, notes), (7, "False\n", {}))

    def test_without_the_variable_nothing_is_changed(self):
        status, output, notes = self.run_program(
            "import sys, torch; print('memtrace_dry_run' in sys.modules, type(torch.__loader__).__name__)", MEMTRACE_DRY_RUN="")
        self.assertEqual((status, output, notes), (0, "False SourceFileLoader\n", {}))

    def test_the_users_own_sitecustomize_runs(self):
        (self.folder / "sitecustomize.py").write_text("import builtins; builtins.marked = __file__\n")
        _, output, _ = self.run_program("import sys, sitecustomize; print(marked == sitecustomize.__file__, 'memtrace_dry_run' in sys.modules)")
        self.assertEqual(output, "True True\n")

    def test_the_users_own_sitecustomize_may_fail_as_ever(self):
        (self.folder / "sitecustomize.py").write_text("raise ValueError('mine')\n")
        status, output, _ = self.run_program("print('ran')")
        self.assertEqual(status, 0)
        self.assertIn("mine", output)
        self.assertIn("ran", output)

    def test_two_shims_do_not_look_for_each_other(self):
        other = self.folder / "other"
        shutil.copytree(SHIM, other)
        (self.folder / "sitecustomize.py").write_text("import builtins; builtins.runs = getattr(builtins, 'runs', 0) + 1\n")
        status, output, notes = self.run_program(
            "import torch; torch.compile(1); print(runs)", PYTHONPATH=os.pathsep.join(map(str, (SHIM, other, self.folder))))
        self.assertEqual((status, output), (0, "1\n"))
        self.assertEqual(self.only(notes)["answers"]["eager"]["count"], 1)

    def test_the_path_stays_as_it_is(self):
        (self.folder / "sitecustomize.py").write_text("import builtins, sys; builtins.path = list(sys.path)\n")
        _, output, _ = self.run_program("import sys; print(path == sys.path[1:], sys.dont_write_bytecode)", PYTHONDONTWRITEBYTECODE="")
        self.assertEqual(output, "True True\n") # -B

    def test_asking_for_torch_is_not_importing_it(self):
        text = "import importlib.util, torch_asked\nimport torch\nprint(torch.compile(3))"
        (self.folder / "torch_asked.py").write_text("import importlib.util\nassert importlib.util.find_spec('torch')\n")
        status, output, notes = self.run_program(text)
        self.assertEqual((status, output), (0, "3\n"))
        self.assertEqual(self.only(notes)["answers"]["eager"]["count"], 1)

    def test_a_second_import_after_an_error_is_hooked(self):
        (self.folder / "torch.py").write_text("import builtins\nif not hasattr(builtins, 'tried'):\n    builtins.tried = 1\n    raise ImportError('once')\n" + FAKE_TORCH % {"cuda": None, "ms": 0.0})
        status, output, _ = self.run_program("try:\n    import torch\nexcept ImportError as e: print(e)\nimport torch; print(torch.compile(3))")
        self.assertEqual((status, output), (0, "once\n3\n"))

    def test_no_bytecode_beside_the_shims_modules(self):
        copy = self.folder / "copy"
        shutil.copytree(SHIM, copy, ignore=shutil.ignore_patterns("__pycache__"))
        program = "import torch; torch.compile(1); import memtrace_dry_run.patches; import sys; print(sys.dont_write_bytecode)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=self.folder,
                              env={**{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
                                   "PYTHONPATH": os.pathsep.join([str(copy), str(self.folder)]), "MEMTRACE_DRY_RUN": "1"})
        self.assertEqual((done.stdout, done.stderr), ("False\n", ""))
        self.assertFalse((copy / "memtrace_dry_run" / "__pycache__").exists())

    def test_torch_keeps_its_loader(self):
        _, output, _ = self.run_program("import torch; print(type(torch.__loader__).__name__, type(torch.__spec__.loader).__name__)")
        self.assertEqual(output, "SourceFileLoader SourceFileLoader\n")

    def test_compile_gives_back_what_it_got(self):
        status, output, notes = self.run_program(
            "import torch\ndef f(): return 3\n@torch.compile(mode='max-autotune')\ndef g(): return 4\nprint(torch.compile(f) is f, g())\n")
        self.assertEqual((status, output), (0, "True 4\n"))
        found = self.only(notes)
        self.assertEqual(found["answers"]["eager"]["count"], 2)
        self.assertEqual(found["facts"]["torch_compile"], "eager")
        self.assertRegex(found["answers"]["eager"]["first"][0], "program.py:[34] ") # up to 3.10: the line of `def`

    def test_time_passes_between_events(self):
        text = "import torch; e = torch.cuda.Event(); print(1 / e.elapsed_time(e))"
        _, output, notes = self.run_program(text)
        self.assertEqual(output, "1.0\n")
        self.assertEqual(self.only(notes)["answers"], {}) # times decide no size
        self.torch(ms=4.0)
        _, output, notes = self.run_program(text)
        self.assertEqual(output, "0.25\n")
        self.assertEqual(self.only(notes)["answers"], {}) # also what the simulated runtime answers

    def test_a_warning_names_the_users_frame(self):
        text = """import logging, torch, warnings
e = torch.cuda.Event()
e.elapsed_time("printed")
with warnings.catch_warnings(record=True) as seen:
    e.elapsed_time("kept")
print(seen[0].filename == __file__, seen[0].lineno)
warnings.warn("own")
logging.basicConfig(); logging.captureWarnings(True)
e.elapsed_time("logged")
"""
        _, output, _ = self.run_program(text)
        program = self.folder / "program.py"
        for line, what in ((3, "printed"), (7, "own"), (9, "logged")):
            self.assertIn(f"{program}:{line}: UserWarning: {what}", output)
        self.assertIn("True 5\n", output)
        self.assertNotIn("memtrace_dry_run", output)

    def test_a_failure_of_the_shim_is_counted_and_nothing_more(self):
        self.torch(cuda="13.0")  # the fake has no dispatcher to hook
        status, output, notes = self.run_program("import torch; print('runs')")
        self.assertEqual((status, output), (0, "runs\n"))
        failures = self.only(notes)["failures"]
        self.assertEqual([f["count"] for f in failures.values()], [1])
        self.assertIn("AttributeError", next(iter(failures.values()))["error"])

    def test_looking_for_values_adds_no_reference_to_a_storage(self):
        """`untyped_storage` does, and autograd's engine then allocates sums of gradients."""
        self.torch()
        _, output, _ = self.run_program(
            "import torch, types\ntorch._C = types.SimpleNamespace(_storage_address=id)\n"
            "torch.UntypedStorage = types.SimpleNamespace(_free_weak_ref=None)\ntorch.strided = 1\n"
            "from memtrace_dry_run import shadows\nt = types.SimpleNamespace(layout=1)\nprint(shadows.exists(t), shadows.of(t), shadows.forget(t))\n")
        self.assertEqual(output, "False None None\n")

    def test_rules_have_names_of_operators(self):
        self.torch()
        _, output, _ = self.run_program(
            "import torch\ntorch.UntypedStorage = type('S', (), {'_free_weak_ref': None})\n"
            "from memtrace_dry_run import rules\nprint([name for name in rules.table() if not name.isidentifier()])\n")
        self.assertEqual(output, "[]\n")

    def test_shadows_can_be_switched_off(self):
        _, output, notes = self.run_program(
            "import torch\ntry: torch.compile(1)\nexcept RuntimeError as e: print(e)", MEMTRACE_DRY_RUN_SHADOWS="0")
        self.assertEqual((output, notes), ("Triton wants a device\n", {}))

    def test_an_error_of_torch_itself_is_the_programs(self):
        (self.folder / "torch.py").write_text("raise ImportError('libcudart.so')")
        status, output, _ = self.run_program("import torch")
        self.assertEqual(status, 1)
        self.assertIn("ImportError: libcudart.so", output)

    def test_each_process_writes_its_own_notes(self):
        _, output, notes = self.run_program(
            "import os, torch\ntorch.compile(1); torch.compile(2); torch.compile(3)\n"
            "p = os.fork()\nif p == 0: torch.compile(4); os._exit(0)\nos.waitpid(p, 0); print(os.getpid(), p)")
        parent, child = map(int, output.split())
        self.assertEqual(notes[parent]["answers"]["eager"]["count"], 3)
        self.assertEqual(notes[child]["answers"]["eager"]["count"], 1)

    def test_notes_survive_a_kill(self):
        _, _, notes = self.run_program("import os, signal, torch\nfor i in range(9): torch.compile(i)\nos.kill(os.getpid(), signal.SIGKILL)")
        self.assertEqual(self.only(notes)["answers"]["eager"]["count"], 8) # written when the count has doubled

    def test_notes_that_cannot_be_written_change_nothing(self):
        status, output, notes = self.run_program("import torch; torch.compile(1); print('ran')", MEMTRACE_DRY_RUN_NOTES="/nowhere/at/all")
        self.assertEqual((status, output, notes), (0, "ran\n", {}))

    def test_half_a_file_is_never_there(self):
        self.run_program("import torch; torch.compile(1)")
        self.assertEqual([path.name for path in self.folder.glob(".*.half")], [])

    def test_counts_of_sizes(self):
        _, _, notes = self.run_program(
            "import torch\nfrom memtrace_dry_run import notes\nnotes.made_up('selection', 3); notes.made_up('number', 5); notes.made_up('count')")
        found = self.only(notes)
        self.assertEqual(found["sizes_from_data"], 4)
        self.assertEqual({k: v["decides_size"] for k, v in found["answers"].items()}, {"selection": True, "number": False, "count": True})

    def test_a_function_before_a_module_runs_once(self):
        (self.folder / "waited.py").write_text("print('the module')\n")
        _, output, _ = self.run_program(
            "from memtrace_dry_run import importing\nimportlib = __import__('importlib')\n"
            "importing.before('waited', lambda: print('before'))\nimport waited\nimportlib.reload(waited)\n")
        self.assertEqual(output, "before\nthe module\nthe module\n")

    def test_other_libraries_are_noted(self):
        (self.folder / "cupy.py").write_text("print('cupy')\n")
        _, output, notes = self.run_program("import importlib.util\nprint(bool(importlib.util.find_spec('cupy')))")
        self.assertEqual((output, notes), ("True\n", {}))
        _, output, notes = self.run_program("import cupy")
        self.assertEqual((output, self.only(notes)["facts"]), ("cupy\n", {"other_library": "cupy"}))

    def test_kernels_of_triton_do_nothing(self):
        self.compiler()
        status, output, _ = self.run_program(
            "import triton\nfrom triton.runtime import driver, jit\nfrom triton.backends import backends\n"
            "print(jit.JITFunction().run(1, grid=(1,)).n_spills, driver.active.get_device_capability(0), isinstance(driver.active, backends['nvidia'].driver))")
        self.assertEqual((status, output), (0, "0 (9, 0) True\n"))

    def test_a_kernel_of_triton_has_what_programs_compute_occupancy_from(self):
        self.compiler()
        status, output, notes = self.run_program(
            "import triton, torch, types\nfrom triton.runtime.jit import JITFunction\nfrom memtrace_dry_run import shadows\n"
            "class Tensor:\n    def __init__(self, at): self.at = at; shadows._shadows[at] = 'known'\n"
            "    untyped_storage = None\nshadows._address = lambda t: t.at\n"
            "k = JITFunction().warmup(1, 2, 3, num_warps=8, grid=(1,)); k._init_handles()\n"
            "print(65536 // k.n_regs > 0, 1 << 17 >= k.metadata.shared > 0, k.n_spills, k.metadata.num_warps, k.asm['ptx'] == '')\n"
            "k[(1, 1, 1)](Tensor(1), Tensor(2), 3); print(*shadows._shadows)")
        self.assertEqual((status, output), (0, "True True 0 8 True\n1\n"))
        self.assertEqual(self.only(notes)["answers"]["count"]["count"], 2) # buffers may follow from both

    def test_triton_knows_the_clocks_of_the_card(self):
        self.compiler()
        _, output, _ = self.run_program(
            "import triton, triton.testing as t\nprint(t.nvsmi(['clocks.max.sm']), t.nvsmi(['power.draw']))\n"
            "print(triton.runtime.driver.active.utils.get_device_properties(0)['mem_clock_rate'])")
        self.assertEqual(output, "[1980] of a device\n3201000\n")

    def test_what_a_kernel_writes_is_not_known(self):
        self.compiler()
        _, output, notes = self.run_program(
            "import types, triton, torch\nfrom triton.runtime.jit import JITFunction\nfrom memtrace_dry_run import shadows\n"
            "class Tensor:\n    def __init__(self, at): self.at = at; shadows._shadows[at] = 'known'\n"
            "    untyped_storage = None\nshadows._address = lambda t: t.at\n"
            "k = JITFunction(); k.run(Tensor(1), Tensor(2), 3, grid=(1,), warmup=True); print(*shadows._shadows)\n"
            "k.run(Tensor(1), types.SimpleNamespace(base=Tensor(2)), n=3, grid=(1,), warmup=False); print(*shadows._shadows)\n"
            "k = JITFunction(); k.src = 'no Python'; k.run(Tensor(1), Tensor(2), 3, grid=(1,)); print(*shadows._shadows)\n")
        self.assertEqual(output, "1 2\n1\n\n")
        self.assertEqual(self.only(notes)["failures"], {})

    def test_arguments_that_are_written(self):
        self.torch()
        kernels = ("def k(a, b, c): tl.store(a + tl.load(b), c)", "def k(a, b, c): helper(a, tl.load(b))", "def k(a, b, c): tl.atomic_add(pointer=c, val=1)",
                   "def k(a, b, c):\n    d = tl.make_tensor_descriptor(b, [8])\n    d.store([a], tl.load(c))", "def k(a, b, c): c.to(tl.int32); tl.sum(a); range(b)")
        _, output, _ = self.run_program(
            "import ast\nfrom memtrace_dry_run import written_arguments as w\n"
            "for text in %r: print(sorted(w._names_in(ast.parse(text)) & set('abc')))" % (kernels,))
        self.assertEqual(output, "['a']\n['a']\n['c']\n['a', 'b']\n[]\n")

    def test_each_configuration_has_a_launcher(self):
        self.compiler()
        status, output, _ = self.run_program(
            "from triton.runtime.jit import JITFunction\nfrom torch._inductor.runtime.triton_heuristics import CachingAutotuner\n"
            "t = CachingAutotuner(JITFunction(), ['a', 'b'])\nt.precompile(warm_cache_only=False)\nt.precompile()\n"
            "print([each.config for each in t.launchers], t.launchers[0](1, 2, 3, stream=0), t.coordinate_descent_tuning(4))")
        self.assertEqual((status, output), (0, "['a', 'b'] None 4\n")) # PyTorch 2.4

    def test_neighbors_of_a_configuration_have_launchers(self):
        self.compiler()
        with open(self.folder / "torch/_inductor/runtime/triton_heuristics.py", "a") as file:
            file.write("class TritonCompileResult: pass\n")
        status, output, _ = self.run_program(
            "from triton.runtime.jit import JITFunction\nfrom torch._inductor.runtime.triton_heuristics import CachingAutotuner\n"
            "launcher = CachingAutotuner(JITFunction(), ['a']).coordinate_descent_tuning('first'); print(launcher.config, launcher(1, 2, 3))")
        self.assertEqual((status, output), (0, "neighbor None\n"))

    def test_hooks_are_on_where_subclasses_and_modes_get_operators(self):
        """Not inside tensors of PyTorch's own tracing, nor on fake tensors."""
        self.torch()
        folder = self.folder / "torch" # a package, as PyTorch is
        folder.mkdir()
        (self.folder / "torch.py").rename(folder / "__init__.py")
        (folder / "_library").mkdir()
        (folder / "_library" / "__init__.py").write_text("")
        (folder / "_library" / "simple_registry.py").write_text("def find_torch_dispatch_rule(op, kind): return op\n")
        status, output, _ = self.run_program("""
import torch, types
class Tensor: pass
class Own(Tensor): pass
class Mode: pass
class Fake(Tensor): __module__ = "torch._subclasses.fake_tensor"
torch.UntypedStorage = types.SimpleNamespace(_free_weak_ref=None)
torch.Tensor, excluded, modes = Tensor, [], [None, None, "fake"]
torch._C = types.SimpleNamespace(_TorchDispatchModeKey=types.SimpleNamespace(FAKE=0), _get_dispatch_mode=lambda key: modes.pop(0),
                                 _dispatch_tls_set_dispatch_key_excluded=lambda key, on: excluded.append(on))
from memtrace_dry_run import hooks
hooks._switch_tensors()
from torch._library.simple_registry import find_torch_dispatch_rule as find
print([(find("op", kind), excluded[:], excluded.clear()) for kind in (Own, Mode, Fake, Own)])
""")
        self.assertEqual((status, output), (0, "[('op', [False], None), ('op', [False], None), ('op', [], None), ('op', [], None)]\n"))

    def test_dynamo_runs_without_hooks_and_makes_guards_with_them(self):
        self.compiler()
        status, output, notes = self.run_program(
            "import torch._dynamo.convert_frame as c, torch._dynamo.trace_rules as t, torch\n"
            "print(c._compile(), torch._C.on, c.config.suppress_errors, t.left_out)")
        self.assertEqual((status, output), (0, "(False, True) True False ['memtrace_dry_run']\n"))
        self.assertEqual(self.only(notes)["answers"], {}) # nothing was given to Inductor

    def test_what_inductor_compiles_is_counted_once(self):
        self.compiler()
        _, output, notes = self.run_program(
            "from torch._inductor import compile_fx as c\nprint(c.compile_fx('graph', settings=1), c.compile_fx('graph'))\n"
            "try: c.compile_fx(None)\nexcept ValueError as raised: print(raised)\nc.compile_fx('graph')")
        self.assertEqual(output, "graph graph\nno model\n")
        self.assertEqual(self.only(notes)["facts"]["torch_compile"], "inductor")
        self.assertEqual({k: v["count"] for k, v in self.only(notes)["answers"].items()}, {"compiled": 3})

    def test_what_the_compiler_cannot_do_runs_eagerly(self):
        self.compiler()
        _, output, notes = self.run_program(
            "import torch._dynamo.convert_frame as c\nfor e in (ValueError('no'), c.Unsupported('a break'), c.UserError('wrong use')):\n"
            "    c.config.suppress_errors = False\n    try: c._compile(e)\n    except Exception as raised: print(raised, c.config.suppress_errors)")
        self.assertEqual(output, "no True\na break False\nwrong use False\n") # what is suppressed falls back
        self.assertEqual({k: v["count"] for k, v in self.only(notes)["answers"].items()}, {"eager": 1})
        self.assertEqual(self.only(notes)["facts"]["torch_compile"], "eager")

    def test_what_is_compiled_is_kept_apart_and_removed(self):
        self.compiler()
        _, output, _ = self.run_program(
            "import os, torch._dynamo.convert_frame\nfolder = os.environ['TORCHINDUCTOR_CACHE_DIR']\nopen(folder + '/best_config', 'w').close()\n"
            "if os.fork() == 0: raise SystemExit\nos.wait()\nprint(folder, os.path.exists(folder), 'TRITON_CACHE_DIR' in os.environ)",
            TORCHINDUCTOR_CACHE_DIR="/mine", TRITON_CACHE_DIR="/mine")
        folder, exists, triton = output.split()
        self.assertEqual((exists, triton), ("True", "False"))
        self.assertNotEqual(folder, "/mine")
        self.assertFalse(os.path.exists(folder))

    def test_a_killed_runs_folder_is_removed_by_the_next(self):
        """Not that of a run that still goes on, and nothing that only looks like one."""
        self.compiler()
        parent = self.folder / "tmp"
        parent.mkdir()
        kill = "import os, signal, torch._dynamo.convert_frame\nos.kill(os.getpid(), signal.SIGKILL)"
        look = "import os, torch._dynamo.convert_frame\nprint(len(os.listdir(os.environ['TMPDIR'])))"
        self.run_program(kill, TMPDIR=str(parent))
        left, = parent.iterdir()
        (left / "code").mkdir()
        (parent / "memtrace-compiled-link").symlink_to(self.folder)
        (parent / "memtrace-compiled-other").mkdir()
        with subprocess.Popen([sys.executable, "-B", "-c", "import sys, torch._dynamo.convert_frame; print(flush=True); sys.stdin.read()"], cwd=self.folder,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SHIM), str(self.folder)]), "MEMTRACE_DRY_RUN": "1", "TMPDIR": str(parent)}) as running:
            running.stdout.readline()
            self.assertFalse(left.exists())
            _, output, _ = self.run_program(look, TMPDIR=str(parent))
            self.assertEqual(output, "4\n") # the link, the other one, the one of the run that goes on, its own
            running.stdin.close()
            running.wait()
        self.assertEqual({path.name for path in parent.iterdir()}, {"memtrace-compiled-link", "memtrace-compiled-other"})
        self.assertTrue((self.folder / "torch").exists())

    def test_where_others_could_exchange_folders_nothing_is_removed(self):
        self.compiler()
        parent = self.folder / "tmp"
        parent.mkdir()
        self.run_program("import os, signal, torch._dynamo.convert_frame\nos.kill(os.getpid(), signal.SIGKILL)", TMPDIR=str(parent))
        left, = parent.iterdir()
        for mode, stays in ((0o777, True), (0o1777, False)):
            parent.chmod(mode)
            self.run_program("import torch._dynamo.convert_frame", TMPDIR=str(parent))
            self.assertEqual(left.exists(), stays, oct(mode))

    def test_padding_is_never_chosen_and_counts(self):
        """Inductor measures whether padding a product pays; here both take the same time."""
        self.compiler()
        status, output, notes = self.run_program(
            "from torch._inductor.fx_passes import pad_mm\n"
            "print([pad_mm.is_padded_faster('key', 9.0, 1.0), pad_mm._should_pad(None, None, None, 'mm')])\n")
        self.assertEqual((status, output), (0, "[False, False]\n"))
        self.assertEqual(self.only(notes)["answers"]["condition"]["count"], 2)
        _, output, _ = self.run_program("from torch._inductor.fx_passes import pad_mm\nprint(pad_mm.is_padded_faster('key', 9.0, 1.0))\n",
                                        MEMTRACE_DRY_RUN_GUESSES="inverted")
        self.assertEqual(output, "True\n")

    def test_the_package_that_asks(self):
        (self.folder / "bitsandbytes.py").write_text("def ask(get): return get()\n")
        _, output, _ = self.run_program("import bitsandbytes, functools\nfrom memtrace_dry_run import fillers, notes\n"
                                        "rule = functools.partial(eval, 'get()', {'__name__': 'memtrace_dry_run.rules', 'get': notes.package})\n"
                                        "print(bitsandbytes.ask(rule) in fillers.LOOK_FOR_OUTLIERS, notes.package())")
        self.assertEqual(output, "True __main__\n")

    def test_every_file_is_python_3_9(self):
        for path in SHIM.rglob("*.py"):
            ast.parse(path.read_text(), str(path), feature_version=(3, 9))

    def test_children_do_not_compile(self):
        _, output, _ = self.run_program("import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import os, torch; print(os.environ[\"TORCHDYNAMO_DISABLE\"], torch.compile(5))'], capture_output=True, text=True).stdout)")
        self.assertEqual(output.strip(), "1 5")


class Alone(Programs):
    """One rank without the others."""

    def setUp(self):
        super().setUp()
        (self.folder / "torch.py").unlink()
        package = self.folder / "torch"
        package.mkdir()
        (package / "__init__.py").write_text(FAKE_TORCH % {"cuda": None, "ms": 0.0} + FAKE_TENSORS)
        (package / "distributed.py").write_text(FAKE_DISTRIBUTED)

    def alone(self, text, **environment):
        status, output, notes = self.run_program("import torch, torch.distributed as dist\n" + text, MEMTRACE_DRY_RUN_ALONE="1", WORLD_SIZE="8", **environment)
        self.assertEqual(status, 0, output)
        return output.splitlines(), notes

    def test_with_others_nothing_is_replaced(self):
        status, output, _ = self.run_program("import torch, torch.distributed as dist\ndist.TCPStore('host', 1)")
        self.assertEqual(status, 1)
        self.assertIn("waits for the other ranks", output)

    def test_a_store_says_that_the_others_did_the_same(self):
        lines, _ = self.alone(
            "s = dist.TCPStore('host', 29500, 4)\n"
            "s.wait(['never set']); s.set('mine', b'1')\n"
            "print(len(s.get('id of rank 0')), s.get('mine'), s.check(['mine']), s.check(['mine', 'other']))\n"
            "print(s.add('arrived', 1), s.add('arrived', 0), s.add('arrived', 1), s.get('arrived'))\n"
            "print(s.compare_set('leader', b'', b'me'), s.compare_set('leader', b'other', b'again'), s.delete_key('mine'), s.num_keys())\n"
            "print(dist.FileStore('path', 2).add('n', 1), dist.TCPStore('host', 1).add('n', 1))\n")
        self.assertEqual(lines, ["128 b'1' True False", "4 4 8 b'8'", "b'me' b'me' True 2", "2 8"])

    def test_gloo_connects_nobody_and_keeps_the_numbers_of_its_group(self):
        lines, _ = self.alone(
            "g = dist.new_gloo(); p = dist.ProcessGroup(g)\n"
            "print(g.of, p.rank(), p.size(), dist._create_process_group_wrapper(g, 'x') is g)\n")
        self.assertEqual(lines, ["('HashStore', 0, 1, 5) 3 8 True"])

    def test_objects_of_other_ranks_are_this_ranks_own(self):
        lines, notes = self.alone(
            "l = ['mine']\n"
            "dist.broadcast_object_list(l, src=0); dist.broadcast_object_list(l, src=3); dist.broadcast_object_list(l, 0, group='of others')\n"
            "dist.broadcast_object_list(l, group_src=2); dist.broadcast_object_list(l, group_src=3)\n"
            "dist.scatter_object_list(l, None, src=0); dist.scatter_object_list(l, [l], src=3)\n"
            "print(dist.recv_object_list(l, src=5), l, dist.calls)\n")
        self.assertEqual(lines, ["5 ['mine'] [('broadcast', 3, None), ('broadcast', 3, None), ('broadcast', 0, None), "
                                 "('broadcast', 3, None), ('broadcast', None, 3), ('scatter', 3)]"])
        self.assertEqual(self.only(notes)["answers"]["object"]["count"], 4)

    def test_objects_arrive_from_a_rank_of_the_same_dry_run(self):
        stem = str(self.folder / "objects-0")
        with open(stem + "-5-3-1", "wb") as file:
            pickle.dump([("shape", 7), None], file)
        lines, notes = self.alone(
            "torch.long = torch.uint8 = None; torch.empty = lambda count, dtype, device: count\n"
            "l = [0, 0]; print(dist.recv_object_list(l, src=5, group='gloo group'), l, len(dist.calls))\n"
            "from memtrace_dry_run import objects; objects.PATIENCE_S = 0\n"
            "print(dist.recv_object_list(l, src=5, group='gloo group'), l, len(dist.calls))\n"
            "dist.send_object_list(['mine'], dst=4); print(dist.calls[-1])\n"
            "dist.send_object_list(['mine'], dst=6); objects.PATIENCE_S = 1e9; dist.recv_object_list(l, src=6, group='gloo group')\n",
            MEMTRACE_DRY_RUN_OBJECTS=stem, MEMTRACE_DRY_RUN_RANKS="3,4,5")
        self.assertEqual([line for line in lines if not line.startswith("memtrace: rank 3 waited")],
                         ["5 [('shape', 7), None] 2", "5 [('shape', 7), None] 2", "('send', 4)"])
        self.assertEqual(len(lines), 4)
        self.assertEqual(self.only(notes)["answers"]["object"]["count"], 2)
        self.assertFalse(pathlib.Path(stem + "-3-6-1").exists())
        with open(stem + "-3-4-1", "rb") as file:
            self.assertEqual(pickle.load(file), ["mine"])

    def test_a_monitored_barrier_of_gloo_returns(self):
        lines, _ = self.alone("dist.monitored_barrier('gloo group'); dist.monitored_barrier('of others'); dist.monitored_barrier(); print(dist.calls)")
        self.assertEqual(lines, ["[('monitored_barrier', None)]"])

    def test_what_is_gathered_is_everybodys_own(self):
        lines, _ = self.alone(
            "from memtrace_dry_run import collectives, hooks\n"
            "import contextlib; hooks.Quiet = contextlib.nullcontext\n"
            "T = torch.Tensor; own = T(7, 8); parts = [T(0, 0), T(0, 0)]; out = T(1)\n"
            "print(torch.kernels['allgather_'](torch.Keys(), [parts], [own], dist.ProcessGroup('nccl'))[1], [p.values for p in parts])\n"
            "torch.kernels['scatter_'](torch.Keys(), [out], [[T(5), T(6)]], dist.ProcessGroup('nccl'), 0)\n"
            "print(out.values, [len(a[0][0]) if n == 'allgather_' else len(a[0]) for n, a in torch.ran])\n")
        self.assertEqual(lines, ["work [[7, 8], [7, 8]]", "[6] [2, 1]"])

    def test_a_sum_is_this_ranks_value_times_the_ranks(self):
        """A loop that waits for the others ends; what it reads counts as guessed (2)."""
        lines, notes = self.alone(FAKE_SHADOWS + (
            "t = on_device(3, 4); group.allreduce([t]); print(known(t))\n"
            "for op in (dist.ReduceOp.MAX, types.SimpleNamespace(reduceOp=dist.ReduceOp.SUM), dist.ReduceOp.BXOR):\n"
            "    t = on_device(3, 4); group.allreduce([t], op); print(known(t))\n"
            "t = on_device(1, 0); t.dtype = table[id(t)].values.dtype = torch.bool; group.allreduce([t]); print(known(t))\n"
            "t = on_device(1, known=False); group.allreduce([t]); print(known(t))\n"
            "alone = dist.ProcessGroup(types.SimpleNamespace(of=(0, 0, 1))); t = on_device(3); alone.allreduce([t]); print(known(t))\n"
            "t = torch.Tensor(3); group.allreduce([t]); print(t.values)\n"))
        self.assertEqual(lines, ["([12, 16], 2)", "([3, 4], 2)", "([12, 16], 2)", "None", "([1, 0], 2)", "None", "([3], 0)", "[12]"])
        self.assertEqual({k: v["count"] for k, v in self.only(notes)["answers"].items()}, {"count": 1}) # on the host
        self.assertEqual([name for name in self.only(notes)["failures"] if not name.startswith("hook of ")], []) # not all are in the fake

    def test_what_ranks_have_alike_does_not_count(self):
        """DDP compares shapes: no size of the program depends on them. Objects count once each."""
        for function in ("_verify_params_across_processes", "Reducer._rebuild_buckets"):
            lines, notes = self.alone(FAKE_SHADOWS + f"print(dist.{function}(group, [torch.Tensor(7)]) == [[7]] * 8)\n")
            self.assertEqual((lines, self.only(notes)["answers"]), (["True"], {}))
        _, notes = self.alone(FAKE_SHADOWS + "dist.all_gather_object(group, [torch.Tensor(7)])\n")
        self.assertEqual({k: v["count"] for k, v in self.only(notes)["answers"].items()}, {"object": 1})

    def test_functional_collectives_say_with_what_they_reduce(self):
        lines, _ = self.alone(FAKE_SHADOWS + (
            "t = on_device(3)\n"
            "torch.ops._c10d_functional.all_reduce.default._handle.redispatch_boxed = lambda keys, t, *_: call('allreduce_', [t], group, 'boxed', None)\n"
            "for op in ('max', 'sum', 'other'): call('all_reduce', t, op, 'name'); print(known(t))\n"))
        self.assertEqual(lines, ["([3], 2)", "([12], 2)", "None"])

    def test_what_others_send_is_guessed_and_never_stale(self):
        lines, notes = self.alone(FAKE_SHADOWS + (
            "own, out, wrong = on_device(1, 2, 3, 4), on_device(0, 0, 0, 0), on_device(0, 0, 0)\n"
            "call('alltoall_base_', out, own, group, [], []); print(known(out))\n"
            "call('alltoall_base_', wrong, own, group, [1, 2], [2, 2]); print(known(wrong))\n"
            "t = on_device(7); call('broadcast_', [t], group, 1, 0); print(known(t)); call('broadcast_', [t], group, 2, 0); print(known(t))\n"
            "t = on_device(7); call('scatter_', [t], [], group, 0); print(known(t))\n"
            "t = on_device(7); call('scatter_', [t], [[on_device(n) for n in range(4)]], group, 1); print(known(t))\n"))
        self.assertEqual(lines, ["([1, 2, 3, 4], 2)", "None", "([7], 0)", "([7], 2)", "None", "([1], 2)"])
        self.assertEqual([name for name in self.only(notes)["failures"] if not name.startswith("hook of ")], [])

    def test_the_fullest_rank_receives_more(self):
        """Counts that ranks exchange in equal parts, and not the tokens themselves."""
        lines, notes = self.alone(FAKE_SHADOWS + (
            "own, out = on_device(10, 3, 4, 5), on_device(0, 0, 0, 0)\n"
            "call('alltoall_base_', out, own, group, [1, 1, 1, 1], [1, 1, 1, 1]); print(known(out), known(own))\n"
            "call('alltoall_base_', out, own, group, [2, 1, 1, 0], [1, 2, 1, 0]); print(known(out))\n"
            "out.dtype = 'float32'; call('alltoall_base_', out, own, group, [], []); print(known(out))\n"), MEMTRACE_DRY_RUN_IMBALANCE="1.3")
        self.assertEqual(lines, ["([13, 4, 5, 6], 2) ([10, 3, 4, 5], 0)", "([10, 3, 4, 5], 2)", "([10, 3, 4, 5], 2)"])
        self.assertIs(self.only(notes)["facts"]["exchanged_counts"], True)

    def test_fake_groups_take_what_nccl_would(self):
        """Each group of several ranks once, when a collective has a tensor on the device; what others send is this rank's own."""
        folder = self.folder / "torch"
        for name in ("testing", "_internal", "distributed"):
            folder = folder / name
            folder.mkdir()
            (folder / "__init__.py").write_text("")
        (folder / "fake_pg.py").write_text("class FakeProcessGroup:\n    def __init__(self, n): self.n = n\n    def size(self): return self.n\n    def rank(self): return 0\n")
        status, output, notes = self.run_program(
            "import torch, torch.distributed as dist\nfrom torch.testing._internal.distributed.fake_pg import FakeProcessGroup\n" + FAKE_SHADOWS +
            "from memtrace_dry_run import simulated\n"
            "made, groups = [], [dist.ProcessGroup(FakeProcessGroup(n)) for n in (4, 8, 1, 2)]\n"
            "simulated.communicator = lambda *numbers: made.append(numbers)\n"
            "def exchanged(group):\n"
            "    own, out = on_device(1, 2), on_device(0, 0)\n"
            "    call('alltoall_base_', out, own, group, [], [])\n"
            "    return known(out)\n"
            "print([exchanged(group) for group in groups[:3] * 2], made)\n"
            "t = torch.Tensor(3); call('allreduce_', [t], groups[3], 'boxed', None); print(t.values)\n"
            "print(made)\n")
        self.assertEqual((status, output.splitlines()), (0, ["[" + ", ".join(["([1, 2], 2)"] * 6) + "] [(4, 0), (8, 0)]", "[3]", "[(4, 0), (8, 0)]"]))
        self.assertEqual(self.only(notes)["facts"]["fake_groups"], 2)

    def test_several_processes_guess_what_nccl_brings(self):
        """NCCL is simulated; what gloo brings to tensors on the host is real."""
        status, output, _ = self.run_program(
            "import torch, torch.distributed as dist\n" + FAKE_SHADOWS +
            "def reduced(t): call('allreduce_', [t], group, 'boxed', None); return t\n"
            "print(known(reduced(on_device(3))), reduced(torch.Tensor(3)).values)\n")
        self.assertEqual((status, output.splitlines()), (0, ["([12], 2) [3]"]))

    def test_a_stage_without_shapes_says_what_to_pass(self):
        package = self.folder / "torch" / "distributed"
        package.mkdir()
        (self.folder / "torch" / "distributed.py").rename(package / "__init__.py")
        (package / "pipelining").mkdir()
        (package / "pipelining" / "__init__.py").write_text("")
        (package / "pipelining" / "stage.py").write_text(
            "class PipelineStage:\n    def __init__(self, index): self.stage_index, self.is_first = index, index == 0\n"
            "    def _shape_inference(self, args, kwargs=None):\n        if args: raise AssertionError(args)\n        raise AssertionError('Expected tuple, got NoneType')\n")
        lines, _ = self.alone(
            "from torch.distributed.pipelining.stage import PipelineStage\n"
            "for stage, args in ((2, ()), (2, 'other'), (0, ())):\n"
            "    try: PipelineStage(stage)._shape_inference(args)\n"
            "    except Exception as error: print(type(error).__name__, str(error)[:59], 'input_args=' in str(error))\n")
        self.assertEqual(lines, ["RuntimeError memtrace dry-run: stage 2 runs without the stage before it, True", "AssertionError other False",
                                 "AssertionError Expected tuple, got NoneType False"])

    def test_an_interrupt_leaves_the_hooks_as_they_were(self):
        """In a rule, and where hooks are switched off: later operations would not be followed, or get an
        answer that was meant for this one."""
        lines, _ = self.alone('''
import types
from memtrace_dry_run import hooks, rules, sizes
on, entered = [True], []
hooks._is_on = lambda: on[0]
hooks._switch = lambda value: on.__setitem__(0, value)
hooks._is_traced = lambda: interrupt()
def interrupt(*_):
    raise KeyboardInterrupt
def attempt(call):
    try:
        call()
    except KeyboardInterrupt:
        print(getattr(hooks._here, "inside", False), on[0], len(entered))
class Guard:
    def __enter__(self): entered.append(self)
    def __exit__(self, *_): entered.remove(self)
torch._C.DisableTorchFunction = torch._C._AutoDispatchBelowAutograd = Guard
torch._C._DisableTorchDispatch = interrupt
attempt(lambda: hooks.Quiet().__enter__())
torch._C._DisableTorchDispatch = Guard
attempt(hooks._with_hooks(print, True))
sizes.abandon = lambda: print("abandoned")
hooks._device_tensor = lambda values: True
hooks._are_wrapped = lambda values: False
op = types.SimpleNamespace(_handle=types.SimpleNamespace(redispatch_boxed=lambda *_: 7), _schema=types.SimpleNamespace(arguments=[]))
for before, after in ((interrupt, None), (lambda *_: None, interrupt)):
    rule = types.SimpleNamespace(before=before, after=after, also_from_device=False, is_wanted=None, layout=None)
    attempt(lambda: hooks._kernel(op, rule, "name", "key")(torch.Keys()))
''')
        whole = "False True 0"
        self.assertEqual(lines, [whole, whole, "abandoned", whole, "abandoned", whole])

    def test_a_rank_that_only_sends_gathers_nothing(self):
        lines, _ = self.alone(FAKE_SHADOWS + "print(call('gather_', [], [torch.Tensor(7)], dist.ProcessGroup(dist.new_gloo()), 0)[1], torch.ran)\n")
        self.assertEqual(lines, ["the barrier's work []"])

    def test_a_mesh_tells_how_large_its_groups_are(self):
        """device_mesh has `split_group` by name, from before it was replaced."""
        package = self.folder / "torch" / "distributed"
        package.mkdir()
        (self.folder / "torch" / "distributed.py").rename(package / "__init__.py")
        with open(package / "__init__.py", "a") as file:
            file.write("def _new_process_group_helper(size, rank): calls.append('made')\ndef split_group(parent_pg=None, split_ranks=None): calls.append('split')\nfrom . import device_mesh\n")
        (package / "device_mesh.py").write_text(
            "import sys\nfrom memtrace_dry_run import simulated\nd = sys.modules['torch.distributed']\nsplit_group = d.split_group\n"
            "simulated.function = lambda name, count: lambda *numbers: d.calls.append(numbers)\n")
        lines, _ = self.alone(
            "dist.device_mesh.split_group(split_ranks=[[0, 1], [5, 3]]); dist._new_process_group_helper(4, 1); print(dist.calls)\n")
        self.assertEqual(lines, ["[(2, 0), 'split', (0, 0), (4, 1), 'made', (0, 0)]"])

    def test_gloo_runs_as_one_of_one(self):
        lines, _ = self.alone(
            "from memtrace_dry_run import collectives, hooks\n"
            "import contextlib; hooks.Quiet = contextlib.nullcontext\n"
            "T = torch.Tensor; own = T(7); parts = [T(0), T(0)]; group = dist.ProcessGroup(dist.new_gloo()); out = T(1)\n"
            "back = torch.kernels['allgather_'](torch.Keys(), [parts], [own], group)\n"
            "print(back[0][0] is parts, back[1], [p.values for p in parts])\n"
            "torch.kernels['broadcast_'](torch.Keys(), [own], group, 5, 0)\n"
            "print(torch.kernels['scatter_'](torch.Keys(), [out], [], group, 0)[1])\n"
            "print([(n, len(a[0][0]) if n == 'allgather_' else a[2]) for n, a in torch.ran])\n")
        self.assertEqual(lines, ["True work [[7], [7]]", "the barrier's work", "[('allgather_', 1), ('broadcast_', 0)]"])


class Guesses(Programs):
    """Where answers were made up, other outcomes of them, and guesses that made a program fail."""

    READING = "from memtrace_dry_run import guesses, notes\nread = guesses.read\n"

    def suspect(self, text, **environment):
        status, output, notes = self.run_program(self.READING + text, **environment)
        self.assertNotEqual(status, 0, output)
        return self.only(notes)["facts"].get("suspect")

    def test_places_are_those_of_the_program(self):
        (self.folder / "torch").mkdir()
        (self.folder / "torch" / "__init__.py").write_text("")
        (self.folder / "torch" / "inner.py").write_text("def call(function): return function()\n")
        _, output, notes = self.run_program(
            "import functools\nfrom memtrace_dry_run import notes\nfrom torch import inner\n"
            "for size in (7, 9903, 5): inner.call(functools.partial(notes.made_up, 'selection', size=size, of=2 * size))\n"
            "notes.made_up('number')\nnotes.write()\n")
        self.assertEqual(output, "")
        [place] = self.only(notes)["places"]
        self.assertEqual((place["place"].rpartition("/")[2], place["innermost"].rpartition("/")[2]), ("program.py:4", "inner.py:1"))
        self.assertEqual([place[name] for name in ("kind", "count", "size", "of")], ["selection", 3, 9903, 19806])

    def test_places_are_bounded(self):
        _, _, notes = self.run_program("from memtrace_dry_run import notes\n" + "notes.made_up('selection', size=70, of=140)\n" * 100)
        notes = self.only(notes)
        self.assertEqual((len(notes["places"]), notes["answers"]["selection"]["count"]), (64, 100))

    def test_decisions_are_inverted_and_checks_are_not(self):
        text = self.READING + (
            "if read(True):\n    print('first')\nelse:\n    print('second')\n"
            "assert read(False), 'a check gets the outcome that passes'\n"
            "if read(True):\n    raise RuntimeError\n"
            "if not read(False):\n    print('not passed')\n    raise RuntimeError\n"
            "if read(True) and print('unclear'):\n    raise RuntimeError\nprint(read(0.5), read(3))\n")
        for guesses, first in (("", "first"), ("share=100", "first"), ("inverted", "second")):
            _, output, notes = self.run_program(text, MEMTRACE_DRY_RUN_GUESSES=guesses)
            self.assertEqual(output.split("\n"), [first, "unclear", "0.5 3", ""], guesses)
        answers = self.only(notes)["answers"]
        self.assertEqual({kind: answers[kind]["count"] for kind in answers}, {"condition": 1, "check": 4, "number": 1, "count": 1})

    NUMBERS = READING + "from memtrace_dry_run.read_numbers import ReadNumber\nloss = ReadNumber(0.5)\n"

    def test_a_number_that_is_compared_decides(self):
        text = self.NUMBERS + (
            "import json\nmean = sum([loss, 1 - loss]) / 2\nis_best = mean < 0.25\nprint(is_best, best if 1 > (best := abs(-loss) + 1) else 'second')\n"
            "assert loss < 0.1, 'passes'\nif loss > 0.1:\n    raise RuntimeError\nprint(loss < float('inf'), loss != loss)\n"
            "print(json.dumps([loss]), '%.2f' % loss, max(loss, 0.75), type(mean) is type(loss))\n")
        for guesses, first in (("", "False second"), ("inverted", "True 1.5")):
            _, output, notes = self.run_program(text, MEMTRACE_DRY_RUN_GUESSES=guesses)
            self.assertEqual(output.split("\n"), [first, "True False", "[0.5] 0.50 0.75 True", ""], guesses)
        notes = self.only(notes)
        self.assertEqual({kind: answer["count"] for kind, answer in notes["answers"].items()}, {"condition": 2, "check": 2})
        self.assertEqual(sorted(place["place"].rpartition(":")[2] for place in notes["places"]), ["7", "8"])

    def test_a_number_that_is_only_reported_decides_nothing(self):
        _, output, notes = self.run_program(self.NUMBERS + (
            "import copy, pickle, statistics\nprint(f'{loss:.1f}', round(loss, 1), sorted([loss, 0.1]), min(loss, 1), loss is not None)\n"
            "print(type(copy.deepcopy([loss])[0]) is ReadNumber, type(pickle.loads(pickle.dumps(loss))), statistics.mean([loss, 1.5]), {loss: 1}[0.5])\n"
            "notes.write()\n"))
        self.assertEqual(output, "0.5 0.5 [0.1, 0.5] 0.5 True\nTrue <class 'float'> 1.0 1\n")
        self.assertEqual([note["answers"] for note in notes if note["answers"]], [])

    def test_a_number_does_not_break_what_looks_at_its_class(self):
        """Like orjson, which writes no subclass of float, and NumPy, whose numbers have more methods."""
        (self.folder / "orjson.py").write_text("def dumps(value, default=None, option=None):\n"
                                               "    return option, [one if type(one) is float else default(one) for one in value]\n")
        _, output, _ = self.run_program(self.NUMBERS + (
            "from memtrace_dry_run import read_numbers\nread_numbers.write_as_float()\nimport orjson, yaml\n"
            "option, written = orjson.dumps([loss, 1.5, {1}], list, 3)\nprint(option, written, type(written[0]).__name__, yaml.safe_dump([loss]).strip())\n"
            "try:\n    orjson.dumps([{1}])\nexcept TypeError as error:\n    print(error)\n"
            "class Other(float):\n    def __radd__(self, left):\n        return 'other'\nprint(loss + Other(1), loss ** float(2))\n"))
        self.assertEqual(output, "3 [0.5, 1.5, [1]] float - 0.5\nType is not JSON serializable: set\nother 0.25\n")

    def test_two_numbers_that_are_compared_decide(self):
        text = self.NUMBERS + ("best, kept = float('inf'), 0\nfor _ in range(5):\n    mean = sum([loss, loss]) / 2\n    if mean < best:\n"
                               "        best, kept = mean, kept + 1\nprint(kept)\n")
        for guesses, kept in (("", "1"), ("inverted", "5")):
            _, output, notes = self.run_program(text, MEMTRACE_DRY_RUN_GUESSES=guesses)
            self.assertEqual((output.strip(), self.only(notes)["answers"]["condition"]["count"]), (kept, 4), guesses)

    def test_loops_that_wait_for_a_number_end(self):
        text = self.NUMBERS + ("def steps(tolerance, number):\n    count = 0\n    while number() > tolerance:\n        count += 1\n    return count\n"
                               "print(steps(0.1, lambda: loss))\ncount = 0\nwhile read(0.5) > 0.1:\n    count += 1\nprint(count)\n")
        for guesses, counts in (("", ["1000", "1001"]), ("inverted", ["0", "2"])):
            _, output, notes = self.run_program(text, MEMTRACE_DRY_RUN_GUESSES=guesses)
            self.assertEqual(output.split(), counts, guesses)
            self.assertEqual({place["kind"] for place in self.only(notes)["places"]}, {"condition"})

    def test_the_guess_in_the_line_that_failed_is_suspect(self):
        text = "def inner(value):\n    if value != 1:\n        raise RuntimeError(value)\ndef outer():\n    read(True)\n    inner(read(2))\nouter()\n"
        found = self.suspect(text)
        self.assertEqual((found["other"], found["error"]), (f"number 0 {self.folder / 'program.py'}:8", "RuntimeError: 2"))
        found = self.suspect(text, MEMTRACE_DRY_RUN_GUESSES="other=" + found["other"])
        self.assertEqual((found["other"].split()[1], found["error"]), ("1", "RuntimeError: 0"))
        self.assertEqual(self.run_program(self.READING + text, MEMTRACE_DRY_RUN_GUESSES="other=" + found["other"])[:2], (0, ""))

    def test_the_last_guess_of_the_function_that_failed_is_suspect(self):
        text = "def search():\n    for _ in range(5):\n        if read(False):\n            return\n    raise RuntimeError('no end')\nsearch()\n"
        found = self.suspect(text)
        self.assertEqual(found["other"], f"truth 1 {found['place']}")
        self.assertTrue(found["place"].endswith("program.py:5"), found)
        self.assertEqual(self.run_program(self.READING + text, MEMTRACE_DRY_RUN_GUESSES="other=" + found["other"])[0], 0)

    def test_failures_for_other_causes_are_not_suspect(self):
        self.assertIsNone(self.suspect("print(read(0.5), wrong_name)\n"))
        self.assertIsNone(self.suspect("class OutOfMemoryError(RuntimeError): pass\nread(True)\nraise OutOfMemoryError\n"))
        self.assertIsNone(self.suspect("def loss(): return read(0.5)\nloss()\nraise ValueError\n"))
        self.assertIsNone(self.suspect("if read(False): raise SystemExit(3)\nraise KeyboardInterrupt\n"))


# What changes on paper touch of torch: modules, optimizers, checkpoints, tensors saved for backward, the loss.
FAKE_MODEL = {
    "torch/__init__.py": """
import types
__version__ = "2.99"
class version: cuda = None
class cuda:
    class Event:
        def elapsed_time(self, other): return 0.0
class UntypedStorage:
    @staticmethod
    def _free_weak_ref(_): pass
class Tensor:
    is_cuda = True
    def numel(self): return 1000
    def element_size(self): return 4
compiler = types.SimpleNamespace(is_compiling=lambda: False)
def is_grad_enabled(): return True
bfloat16, default = "bf16", []
set_default_dtype = default.append
class save_on_cpu:
    on = []
    def __init__(self, pin_memory=False): self.pack_hook = lambda tensor: "copy"
    def __enter__(self): self.on.append(self)
    def __exit__(self, *_): self.on.pop()
autograd = types.SimpleNamespace(graph=types.SimpleNamespace(save_on_cpu=save_on_cpu), Function=object)
from . import nn, optim, utils
""",
    "torch/nn/__init__.py": """
class Module:
    training = True
    def __init__(self): self.made = True
    def __setstate__(self, state): pass
    def __call__(self, *a, **k): return self.forward(*a, **k)
from . import functional
""",
    "torch/nn/functional.py": "def cross_entropy(*_): return 'plain'\n",
    "torch/optim/__init__.py": """
class Optimizer:
    def __init__(self, parameters, **options): self.options = options
class Adam(Optimizer):
    def __init__(self, parameters, lr=1, *, foreach=None): super().__init__(parameters, lr=lr, foreach=foreach)
class AdamW(Adam): pass
class LBFGS(Optimizer): pass
""",
    "torch/utils/__init__.py": "",
    "torch/utils/checkpoint.py": """
again = []
def checkpoint(function, *args, use_reentrant, **kwargs):
    again.append(lambda: function(*args, **kwargs))
    return function(*args, **kwargs)
""",
}


class Changes(Programs):
    """--apply, with a fake torch."""

    MODEL = """
import torch
class Block(torch.nn.Module):
    def forward(self, x, more=0):
        if x > 1: return Block()(x - 1), "tuple"
        return x + more
class Model(torch.nn.Module):
    def forward(self, x): return Block()(x, more=1)
"""

    def apply(self, text, changes, **more):
        (self.folder / "torch.py").unlink(missing_ok=True)
        for name, content in FAKE_MODEL.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(content)
        status, output, notes = self.run_program(text, MEMTRACE_DRY_RUN_APPLY=changes, **more)
        notes = self.only(notes)
        self.assertEqual([name for name in notes["failures"] if not name.startswith("hook")], [], notes)
        return status, output.splitlines(), notes["facts"].get("applied", [])

    def pasted(self, told):
        """The last program with the patch in it, without the dry run."""
        text = pasted((self.folder / "program.py").read_text(), [piece for change in told for piece in change["pieces"]])
        (self.folder / "program.py").write_text(text)
        done = subprocess.run([sys.executable, "-B", "program.py"], capture_output=True, text=True, check=False, cwd=self.folder)
        return (done.stdout + done.stderr).splitlines()

    def test_the_outermost_modules_of_a_class_are_checkpointed(self):
        text = self.MODEL + (
            "from torch.utils.checkpoint import again\n"
            "print(Model()(1), Block()(3), len(again), [run() for run in again], len(again))\n"
            "Block.training = False; print(Block()(1), len(again))\n")
        status, lines, told = self.apply(text, "checkpoint=Block")
        self.assertEqual((status, lines), (0, ["2 ((1, 'tuple'), 'tuple') 2 [2, ((1, 'tuple'), 'tuple')] 2", "1 2"]))
        self.assertEqual([(c["change"], c["calls"], c["problem"]) for c in told], [("checkpoint=Block", 2, "")])
        self.assertEqual(told[0]["pieces"][1], {"place": "below class Block, after line 6 of program.py", "text": "checkpointed(Block)"})
        self.assertEqual(self.pasted(told), lines)

    def test_a_class_of_a_module_is_imported(self):
        (self.folder / "mine.py").write_text(self.MODEL)
        text = "import mine, torch\nfrom torch.utils.checkpoint import again\nmine.Model()(1); print(len(again))\n"
        for name in ("Block", "mine.Block"):
            _, lines, told = self.apply(text, "checkpoint=" + name)
            self.assertEqual(lines, ["1"])
            self.assertEqual(told[0]["pieces"][1], {"place": "at the top of the program", "text": "from mine import Block\ncheckpointed(Block)"})
            self.assertEqual(self.pasted(told), lines)

    def test_the_analysis_and_dynamo_know_the_patch(self):
        """By its file: no code of the program (frame_judge.c), and none of this package, which Dynamo leaves out."""
        _, lines, _ = self.apply(self.MODEL + "Block()(1); print(Block.forward.__code__.co_filename)", "checkpoint=Block")
        self.assertEqual(lines, ["/memtrace_dry_run/patch.py"])

    def test_a_class_that_never_ran_is_a_problem(self):
        _, _, told = self.apply(self.MODEL + "Model()(1)", "checkpoint=Model,Blocc+offload=Block")
        self.assertEqual([c["problem"] for c in told], [
            "no module of class Blocc was made; did you mean Block? classes that were made: Block, Model", "Block never ran in training with gradients"])
        _, _, told = self.apply(self.MODEL + "Model.training = False; Model()(1)", "checkpoint=Model")
        self.assertEqual(told[0]["problem"], "Model never ran in training with gradients")
        compiled = "from memtrace_dry_run import notes; notes.made_up('compiled')\n"
        _, _, told = self.apply(self.MODEL + compiled + "Model.training = False; Model()(1)", "checkpoint=Model")
        self.assertEqual((told[0]["problem"], "flops" in told[0]), ("", False))

    def test_tensors_saved_for_backward_are_counted(self):
        saving = "class Block(torch.nn.Module):\n    def forward(self):\n        print([hooks.pack_hook(torch.Tensor()) for hooks in torch.save_on_cpu.on])\n"
        text = "import torch\n" + saving + "Block()(); Block()()\n"
        for change in ("offload=Block", "save_on_cpu"):
            _, lines, told = self.apply(text, change)
            self.assertEqual((lines, told[0]["calls"], told[0]["copied_bytes"]), (["['copy']"] * 2, 2, 8000), change)
            self.assertEqual(self.pasted(told), lines)

    def test_an_option_of_optimizers(self):
        text = "import torch\nfor kind in (torch.optim.AdamW, torch.optim.LBFGS): print(kind([]).options)\nprint(torch.optim.Adam([], foreach=True).options)\n"
        _, lines, told = self.apply(text, "foreach=False")
        self.assertEqual(lines, ["{'lr': 1, 'foreach': False}", "{}", "{'lr': 1, 'foreach': True}"])
        self.assertEqual((told[0]["calls"], len(told[0]["pieces"])), (2, 2))
        self.assertEqual(self.pasted(told), lines)
        _, _, told = self.apply("import torch; torch.optim.LBFGS([])", "foreach=False")
        self.assertEqual(told[0]["problem"], "no optimizer of torch.optim that takes foreach was made")
        status, _, told = self.apply("import torch; print('ran')", "8bit", PYTHONNOUSERSITE="1")
        self.assertIn((status, "has no bitsandbytes" in told[0]["problem"]), ((2, True), (0, False)))

    def test_settings(self):
        text = "import os, torch; print(torch.default, os.environ.get('PYTORCH_CUDA_ALLOC_CONF'), os.environ.get('PYTORCH_ALLOC_CONF'))"
        _, lines, told = self.apply(text, "expandable+dtype=bfloat16")
        self.assertEqual((lines, [c["calls"] for c in told]), (["['bf16'] expandable_segments:True None"], [1, 1]))
        _, lines, told = self.apply(text, "expandable", PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64,expandable_segments:False")
        self.assertEqual(lines, ["[] max_split_size_mb:64,expandable_segments:True None"])
        self.assertEqual(variables(told[0]["pieces"]), {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64,expandable_segments:True"})
        _, lines, _ = self.apply(text, "expandable", PYTORCH_ALLOC_CONF="a:1")
        self.assertEqual(lines, ["[] None a:1,expandable_segments:True"])
        _, lines, told = self.apply(text, "")
        self.assertEqual((lines, told), (["[] None None"], []))


if __name__ == "__main__":
    unittest.main()
