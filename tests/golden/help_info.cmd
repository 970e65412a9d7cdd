memtrace help info
