memtrace fleet --json --tune captures/twogpu.pickle.zst | sed -n '/"settings": {/,/"first_death"/p'
