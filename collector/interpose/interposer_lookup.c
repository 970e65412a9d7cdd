/* See interposer.h: how programs look up libcuda's functions, and get those of the interposer. */
#include "interposer.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static void *find_nothing(void *handle, const char *name)
{
    (void)handle, (void)name;
    return NULL;
}

/* Read by dlsym below. Threads that initialize it at the same time write the same value. */
MT_HIDDEN extern _Atomic(mt_dlsym_fn *) mt_real_dlsym;
_Atomic(mt_dlsym_fn *) mt_real_dlsym;

/* The version of dlsym before glibc 2.34: the first one of glibc on this machine. */
#if defined(__aarch64__)
#define OLD_DLSYM "GLIBC_2.17"
#else
#define OLD_DLSYM "GLIBC_2.2.5"
#endif

/* dlvsym is not interposed, so it finds the next dlsym. The version of dlsym depends on the age of
 * libc. */
mt_dlsym_fn *mt_interposer_find_dlsym(void)
{
    mt_dlsym_fn *known = atomic_load_explicit(&mt_real_dlsym, memory_order_relaxed);

    if (known)
        return known;
    void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!found)
        found = dlvsym(RTLD_NEXT, "dlsym", OLD_DLSYM);
    known = found ? (mt_dlsym_fn *)found : find_nothing;
    atomic_store_explicit(&mt_real_dlsym, known, memory_order_relaxed);
    return known;
}

static void *libcuda(void)
{
    static _Atomic(void *) handle;
    void *known = atomic_load_explicit(&handle, memory_order_relaxed);

    if (!known) {
        known = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        atomic_store_explicit(&handle, known, memory_order_relaxed);
    }
    return known;
}

void *mt_real_entry(const char *name)
{
    void *library = libcuda();

    return library ? mt_interposer_find_dlsym()(library, name) : NULL;
}

enum { PER_THREAD_STREAM = 2 };

/* Returns whether the function is a version of `base`, such as "cuMemAlloc_v2" of "cuMemAlloc". */
static bool is_version_of(const char *name, const char *base, bool per_thread)
{
    size_t length = strlen(base);

    if (strncmp(name, base, length))
        return false;
    name += length;
    if (per_thread)
        return !strcmp(name, "_ptsz");
    return !*name ||
           (name[0] == '_' && name[1] == 'v' && name[2] >= '1' && name[2] <= '9' && !name[3]);
}

/* The version with this address, otherwise the newest version that the program can mean. */
static struct mt_interposed *choose(const char *base, const void *found, uint32_t version,
                                    bool per_thread)
{
    struct mt_interposed *newest = NULL;

    for (struct mt_interposed *at = mt_interposed; at->name; at++) {
        if (!is_version_of(at->name, base, per_thread))
            continue;
        if (mt_real_entry(at->name) == found)
            return at;
        if (at->since <= version && (!newest || at->since >= newest->since))
            newest = at;
    }
    return newest;
}

/* The driver may also look itself up with this dlsym. */
static bool is_ours(const void *function)
{
    for (const struct mt_interposed *at = mt_interposed; at->name; at++)
        if (at->ours == function)
            return true;
    return false;
}

/* Returns the interposed function instead of the one that the driver returned for `base`. */
static void *replace(const char *base, void *found, uint32_t version, uint64_t flags)
{
    struct mt_interposed *to = NULL;

    if (is_ours(found))
        return found;
    if (flags & PER_THREAD_STREAM)
        to = choose(base, found, version, true);
    if (!to)
        to = choose(base, found, version, false);
    if (!to)
        return found;
    atomic_store_explicit(&to->real, found, memory_order_relaxed);
    return to->ours;
}

typedef uint32_t get_fn(const char *name, void **function, int version, uint64_t flags);
typedef uint32_t get_v2_fn(const char *name, void **function, int version, uint64_t flags,
                           void *status);

MT_EXPORT get_fn cuGetProcAddress;
MT_EXPORT get_v2_fn cuGetProcAddress_v2;

/* A program may also look this function up by name. */
static void *answer(const char *name, void *found, int version, uint64_t flags)
{
    if (!strcmp(name, "cuGetProcAddress"))
        return version >= 12000 ? (void *)cuGetProcAddress_v2 : (void *)cuGetProcAddress;
    return replace(name, found, version < 0 ? 0 : (uint32_t)version, flags);
}

uint32_t cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    get_fn *real = (get_fn *)mt_real_entry("cuGetProcAddress");
    uint32_t result = real ? real(name, function, version, flags) : 3;

    if (!result && name && function && *function)
        *function = answer(name, *function, version, flags);
    return result;
}

uint32_t cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                             void *status)
{
    get_v2_fn *real = (get_v2_fn *)mt_real_entry("cuGetProcAddress_v2");
    uint32_t result = real ? real(name, function, version, flags, status) : 3;

    if (!result && name && function && *function)
        *function = answer(name, *function, version, flags);
    return result;
}

static bool is_of_libcuda(void *function)
{
    Dl_info info;

    if (!dladdr(function, &info) || !info.dli_fname)
        return false;
    const char *file = strrchr(info.dli_fname, '/');
    return !strncmp(file ? file + 1 : info.dli_fname, "libcuda.so", strlen("libcuda.so"));
}

/* The result of a lookup in a handle, for names that begin with "cu". */
MT_HIDDEN void *mt_dlsym_of_handle(void *handle, const char *name);
void *mt_dlsym_of_handle(void *handle, const char *name)
{
    void *found = mt_interposer_find_dlsym()(handle, name);

    if (!found)
        return NULL;
    struct mt_interposed *to = mt_interposed_find(name);
    if (!to && strcmp(name, "cuGetProcAddress") && strcmp(name, "cuGetProcAddress_v2"))
        return found;
    if (!is_of_libcuda(found))
        return found;
    if (!to)
        return name[strlen("cuGetProcAddress")] ? (void *)cuGetProcAddress_v2
                                                : (void *)cuGetProcAddress;
    atomic_store_explicit(&to->real, found, memory_order_relaxed);
    return to->ours;
}

/* dlsym(handle, name). The meaning of RTLD_NEXT (-1) and RTLD_DEFAULT (0) depends on the caller, so
 * the real function must see the caller's return address: it is reached by a jump, not a call. This
 * applies to all names except those that begin with "cu". */
#if defined(__aarch64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        "    hint #34\n" /* bti c: an indirect branch may lead here */
        "    adrp x16, mt_real_dlsym\n"
        "    ldr x16, [x16, :lo12:mt_real_dlsym]\n"
        "    cbnz x16, 1f\n"
        "    stp x29, x30, [sp, -32]!\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, 16]\n"
        "    bl mt_interposer_find_dlsym\n"
        "    mov x16, x0\n"
        "    ldp x0, x1, [sp, 16]\n"
        "    ldp x29, x30, [sp], 32\n"
        "1:  add x17, x0, 1\n"
        "    cmp x17, 1\n"
        "    b.ls 2f\n"
        "    cbz x1, 2f\n"
        "    ldrb w17, [x1]\n"
        "    cmp w17, 'c'\n"
        "    b.ne 2f\n"
        "    ldrb w17, [x1, 1]\n"
        "    cmp w17, 'u'\n"
        "    b.ne 2f\n"
        "    b mt_dlsym_of_handle\n"
        "2:  br x16\n"
        ".size dlsym, . - dlsym\n");
#else
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        "    endbr64\n"
        "    cmpq $0, mt_real_dlsym(%rip)\n"
        "    jne 1f\n"
        "    pushq %rdi\n"
        "    pushq %rsi\n"
        "    subq $8, %rsp\n"
        "    call mt_interposer_find_dlsym\n"
        "    addq $8, %rsp\n"
        "    popq %rsi\n"
        "    popq %rdi\n"
        "1:  leaq 1(%rdi), %rax\n"
        "    cmpq $1, %rax\n"
        "    jbe 2f\n"
        "    testq %rsi, %rsi\n"
        "    je 2f\n"
        "    cmpb $'c', (%rsi)\n"
        "    jne 2f\n"
        "    cmpb $'u', 1(%rsi)\n"
        "    jne 2f\n"
        "    jmp mt_dlsym_of_handle\n"
        "2:  jmp *mt_real_dlsym(%rip)\n"
        ".size dlsym, . - dlsym\n");
#endif
