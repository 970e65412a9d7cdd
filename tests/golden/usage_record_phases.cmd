memtrace record --phases nvtx,torhc true
