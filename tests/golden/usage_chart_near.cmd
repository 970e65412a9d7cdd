memtrace render timline captures/oom_adam.pickle.zst -o x.svg; echo $?
memtrace render flame captures/oom_adam.pickle.zst -o x.svg; echo $?
