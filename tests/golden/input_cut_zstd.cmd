head -c 5000 captures/oom_adam.pickle.zst >cut.zst; memtrace info cut.zst
