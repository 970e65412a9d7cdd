memtrace replay captures/twogpu.pickle.zst --policy pytorch --verify
