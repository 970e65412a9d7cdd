memtrace render policies captures/leak.pickle.zst --device 7 -o x.svg; echo $?; memtrace render icicle captures/leak.pickle.zst --device 7 -o x.svg; echo $?
