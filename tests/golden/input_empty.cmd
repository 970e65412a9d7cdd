: >empty; memtrace info empty
