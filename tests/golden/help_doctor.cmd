memtrace help doctor
