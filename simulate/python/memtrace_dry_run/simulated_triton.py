"""Triton on a simulated device: kernels are written and chosen as ever, but neither compiled nor launched.

Inductor's own code then makes every allocation that it makes on a device: buffers in its order, with its reuse,
and what benchmarks of several configurations take. Only which configuration wins is not known: all take the same
time, so that the first one does."""
import collections
import dataclasses
import types
import warnings

from . import importing, notes, written_arguments

WARP_THREADS = 32
# For a kernel that is not built. Programs divide by both for its occupancy: neither may be 0.
REGISTERS_PER_THREAD = 32
SHARED_BYTES = 1024
BENCHMARK_CACHE_BYTES = 256 << 20  # what Triton's drivers for NVIDIA clear between two measurements


def install(_triton):
    """After `import triton`: a driver that needs neither a compiler nor a GPU; kernels that do nothing."""
    importing.after("triton.testing", _answer_for_nvidia_smi)
    from triton.backends import backends
    from triton.runtime import driver, jit

    if "nvidia" in backends:  # Inductor makes a driver of its own from this
        backends["nvidia"] = dataclasses.replace(backends["nvidia"], driver=Driver)
    driver.set_active(Driver())
    # A graph of nothing but Triton's kernels.
    warnings.filterwarnings("ignore", message="The CUDA Graph is empty")
    jit.JITFunction.run = _not_launched


def _not_launched(self, *arguments, warmup=False, **named):
    """In place of JITFunction.run, which compiles and launches, and gives back the kernel that it built."""
    if not warmup:
        _write(self, zip(self.arg_names, arguments), named.items())
    return Kernel(self, named)


def _write(function, *pairs):
    """FUNCTION was launched with PAIRS of names and values."""
    try:
        written = written_arguments.of(function)
        for name, value in [pair for some in pairs for pair in some]:
            if name in written:
                _forget(value)
    except Exception as error:
        notes.failed("kernel of Triton", error)


class Kernel:
    """What programs read of a kernel that was built, as Triton's CompiledKernel."""

    n_spills = 0

    def __init__(self, function, options):
        self._function = function
        self.num_warps, self.num_stages = options.get("num_warps", 4), options.get("num_stages", 3)
        self.name = getattr(function, "__name__", "kernel")
        self.metadata = _Metadata(name=self.name, num_warps=self.num_warps, num_stages=self.num_stages, num_ctas=options.get("num_ctas", 1),
                                  cluster_dims=(1, 1, 1), tmem_size=0, global_scratch_size=0, profile_scratch_size=0)
        self.asm, self.kernel = collections.defaultdict(str), ""

    @property
    def n_regs(self):
        notes.made_up("count")
        return REGISTERS_PER_THREAD

    @property
    def shared(self):
        return self.metadata.shared

    def _init_handles(self):
        """There is nothing to load."""

    def __getitem__(self, _grid):
        def launch(*arguments, **named):
            _write(self._function, zip(self._function.arg_names, arguments), named.items())

        return launch


class _Metadata(types.SimpleNamespace):
    @property
    def shared(self):
        notes.made_up("count")
        return SHARED_BYTES


def _forget(value):
    """Nobody knows what a kernel has written to VALUE, a tensor or its descriptor."""
    from . import shadows

    value = getattr(value, "base", value)
    if hasattr(value, "untyped_storage"):
        shadows.forget(value)


class _Utilities:
    """Of triton.runtime.driver.active.utils: what programs ask of it."""

    @staticmethod
    def get_device_properties(device):
        import torch

        card = torch.cuda.get_device_properties(device)
        return {"max_shared_mem": getattr(card, "shared_memory_per_block_optin", 0), "max_num_regs": getattr(card, "regs_per_multiprocessor", 65536),
                "multiprocessor_count": card.multi_processor_count, "warpSize": WARP_THREADS, "sm_clock_rate": getattr(card, "clock_rate", 0),
                "mem_clock_rate": getattr(card, "memory_clock_rate", 0), "mem_bus_width": getattr(card, "memory_bus_width", 0)}


def _answer_for_nvidia_smi(testing):
    """Inductor asks for the clock of multiprocessors, and takes each product for limited by it if nobody answers."""
    measured = testing.nvsmi

    def nvsmi(attributes):
        import torch

        card = torch.cuda.get_device_properties(0)
        clocks = {"clocks.max.sm": getattr(card, "clock_rate", 0), "clocks.current.sm": getattr(card, "clock_rate", 0),
                  "clocks.max.memory": getattr(card, "memory_clock_rate", 0), "clocks.current.memory": getattr(card, "memory_clock_rate", 0)}
        if not all(clocks.get(name) for name in attributes):
            return measured(attributes)
        return [clocks[name] // 1000 for name in attributes]

    testing.nvsmi = nvsmi


class Driver:
    """The interface of Triton's drivers, answered by PyTorch."""

    utils = _Utilities()

    @staticmethod
    def is_active():
        return True

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        major, minor = self.get_device_capability(self.get_current_device())
        return GPUTarget("cuda", major * 10 + minor, WARP_THREADS)

    @staticmethod
    def get_device_capability(device=None):
        import torch

        return torch.cuda.get_device_capability(device)

    @staticmethod
    def get_current_device():
        import torch

        return torch.cuda.current_device()

    @staticmethod
    def set_current_device(device):
        import torch

        torch.cuda.set_device(device)

    @staticmethod
    def get_current_stream(device):
        import torch

        return torch.cuda.current_stream(device).cuda_stream

    def get_active_torch_device(self):
        import torch

        return torch.device("cuda", self.get_current_device())

    @staticmethod
    def get_device_interface():
        import torch

        return torch.cuda

    @staticmethod
    def get_benchmarker():
        from triton.testing import do_bench

        return do_bench

    @staticmethod
    def get_empty_cache_for_benchmark():
        import torch

        return torch.empty(BENCHMARK_CACHE_BYTES // 4, dtype=torch.int, device="cuda")

    @staticmethod
    def clear_cache(cache):
        cache.zero_()

    @staticmethod
    def map_python_to_cpp_type(name):
        return name

    @staticmethod
    def assemble_tensormap_to_arg(_tensormaps, arguments):
        return arguments


def install_in_inductor(heuristics):
    """After the import of Inductor's module of that name: a launcher that does nothing for each configuration."""
    tuner = heuristics.CachingAutotuner
    tuner.precompile = _precompile
    if hasattr(heuristics, "TritonCompileResult"): # tuning builds neighbors of a configuration one by one, and measures them
        tuner._precompile_config = _precompile_config
    else: # PyTorch 2.4 and 2.5
        tuner.coordinate_descent_tuning = _first_launcher


def _precompile_config(self, config, *_arguments, **_named):
    return types.SimpleNamespace(config=config, make_launcher=lambda: _launcher(self, config))


def _first_launcher(self, launcher, *_arguments, **_named):
    return launcher


def _precompile(self, *_arguments, **_named):
    """In place of CachingAutotuner.precompile, in all versions of PyTorch: fills `launchers`."""
    with self.lock:
        if not self.launchers:
            self.launchers = [_launcher(self, config) for config in self.configs]


def _launcher(tuner, config):
    mutated = getattr(tuner, "mutated_arg_names", None) or () # by kernels of the program, whose names are its own
    written = [i for i, name in enumerate(tuner.fn.arg_names) if name.startswith(("out_ptr", "in_out_ptr")) or name in mutated]

    def launch(*arguments, **_named):
        for i in written:
            if i < len(arguments):
                _forget(arguments[i])

    launch.config, launch.cache_hash, launch.store_cubin, launch.bin, launch.fn = config, None, False, None, tuner.fn
    launch.n_regs = launch.n_spills = launch.shared = 0
    launch.global_scratch = launch.profile_scratch = None
    launch.def_args = launch.call_args = []
    return launch
