memtrace record --stacks pyton true; echo $?
memtrace record --stacks foo true; echo $?
