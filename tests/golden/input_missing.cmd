memtrace info nosuch.pickle
