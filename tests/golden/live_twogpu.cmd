memtrace live captures/twogpu.pickle.zst --at reserved-peak --device 1
