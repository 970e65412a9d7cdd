memtrace analyze no_history/snapshot.pickle
memtrace analyze no_history/last_free.pickle
