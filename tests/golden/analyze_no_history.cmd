memtrace analyze no_history/snapshot.pickle
