mkdir d; memtrace info d/../d
