memtrace export folded captures/leak.pickle.zst --of kept --blocks --reverse --metric count; memtrace export folded captures/keeps.pickle.zst --of grew
