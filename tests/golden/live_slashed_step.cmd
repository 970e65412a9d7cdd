memtrace live captures/gpt_default.pickle.zst --at 'step#2/backward' --by role
