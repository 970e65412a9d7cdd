memtrace render timeline categories/gpt_profile.pickle.zst -o t.svg -q && grep -oE 'event number|time since [a-z ]*' t.svg
memtrace render timeline categories/gpt_profile.pickle.zst --x time -o time.svg -q && grep -oE 'event number|time since [a-z ]*' time.svg
