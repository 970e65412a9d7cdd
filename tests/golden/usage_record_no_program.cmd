memtrace record -o run.trace.zst no-such-program --help
