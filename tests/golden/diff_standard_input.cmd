memtrace diff - -
