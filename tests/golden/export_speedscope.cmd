echo speedscope:; memtrace export speedscope captures/leak.pickle.zst --of allocated-total --metric requested
