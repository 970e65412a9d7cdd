memtrace analyze captures/oom_adam.pickle.zst -o report >/dev/null; ls report
