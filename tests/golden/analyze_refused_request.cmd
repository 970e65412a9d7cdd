memtrace analyze no_history/refused.pickle
