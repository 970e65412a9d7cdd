memtrace record --stacks pyton true
