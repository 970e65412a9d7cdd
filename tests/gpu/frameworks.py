"""What other frameworks take from the driver.

    frameworks.py jax | cupy | jax_profiled"""
import glob
import os
import sys
import tempfile


def jax():
    os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "platform"
    import jax.numpy as jnp
    import jax
    x = jnp.ones((2048, 2048))
    step = jax.jit(lambda a: jnp.tanh(a @ a) / 2048)
    for _ in range(20):
        x = step(x)
    print(float(x.sum()) > 0)


def jax_profiled():
    """JAX's own profiler, on for a while: what is allocated before, in and after it; and whether it saw the GPU."""
    os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "platform"
    import jax
    import jax.numpy as jnp

    def work():
        for number in range(10):
            jnp.ones((1 << 20) + number * 4096).block_until_ready()
    work()
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            work()
        written = b"".join(open(path, "rb").read() for path in glob.glob(folder + "/**/*.xplane.pb", recursive=True))
    work()
    print("device seen:", b"/device:GPU:0" in written, "kernels seen:", b"kernel_details" in written)


def cupy():
    import cupy
    parts = [cupy.ones((1 << 20) * (n % 7 + 1), dtype=cupy.float32) for n in range(30)]
    print(float(sum(part.sum() for part in parts)))
    del parts
    cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    {"jax": jax, "cupy": cupy, "jax_profiled": jax_profiled}[sys.argv[1]]()
