memtrace dump captures/streams.pickle.zst >all; head -n 40 all; tail -n 20 all; memtrace dump --stacks --from 815 --to 817 captures/streams.pickle.zst
