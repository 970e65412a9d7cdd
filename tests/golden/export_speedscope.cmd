echo speedscope:; memtrace export speedscope captures/leak.pickle.zst --of allocated-total --zoom phase:step#2/forward --metric requested
