memtrace live captures/streams.pickle.zst --at phase:step#3/fanout --by role --json
