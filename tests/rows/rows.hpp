// Writes allocations as rows that memtrace reads. Call rows.alloc after an allocation and
// rows.free before the memory is given back.
#include <chrono>
#include <cstddef>
#include <cstdio>

struct memtrace_rows {
    std::FILE *file;
    explicit memtrace_rows(const char *path) : file(std::fopen(path, "w"))
    {
        std::fputs("op,addr,bytes,t_ns,stream\n", file);
    }
    ~memtrace_rows() { std::fclose(file); }
    void alloc(void *p, std::size_t n, void *stream = nullptr) { row("alloc", p, n, stream); }
    void free(void *p, void *stream = nullptr) { row("free", p, 0, stream); }
    void row(const char *op, void *p, std::size_t n, void *stream)
    {
        auto now = std::chrono::system_clock::now().time_since_epoch();
        long long t = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
        std::fprintf(file, "%s,0x%zx,%zu,%lld,0x%zx\n", op, (std::size_t)p, n, t,
                     (std::size_t)stream);
    }
};
