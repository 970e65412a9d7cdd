/* simulated_site.h, with an imitation of Python and PyTorch: a shell script that answers like the
 * probe, and libraries that import functions of CUDA. */
#include "imitated_site.h"

static enum mt_status prepare(struct mt_simulated_site *site, struct mt_error *error)
{
    char *const command[] = {python, (char *)(uintptr_t) "train.py", NULL};
    const struct mt_simulated_site_request request = {
        .command = command, .cache_folder = cache, .simulated_library = SIMULATED_LIBRARY};

    *error = (struct mt_error){0};
    return mt_simulated_site_prepare(&request, site, error);
}

static struct mt_simulated_site prepared(void)
{
    struct mt_simulated_site site;
    struct mt_error error;
    enum mt_status status = prepare(&site, &error);

    if (status)
        fail_msg("%s", error.text);
    return site;
}

/* In a separate process, because its libraries stay loaded. */
static void in_a_child(void (*check)(const struct mt_simulated_site *site),
                       const struct mt_simulated_site *site)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        check(site);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void need(bool condition, int code)
{
    if (!condition)
        _exit(code);
}

static bool is_mapped(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[PATH_MAX + 128];
    bool found = false;

    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, name) != NULL;
    if (maps)
        fclose(maps);
    return found;
}

static void use_libraries(const struct mt_simulated_site *site)
{
    void *preload = dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL);
    void *runtime = dlopen("libcudart.so.12", RTLD_NOW | RTLD_NOLOAD);
    int (*wheel)(void), (*count)(int *), (*unknown)(void), (*version)(int *), got = 0;

    need(preload && runtime && dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), 1);
    need(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD) &&
             dlopen("libcupti.so.12", RTLD_NOW | RTLD_NOLOAD),
         2);
    need(is_mapped("libcuda.so.1") && !is_mapped("libcudart.so"), 10); /* as PyTorch looks */
    *(void **)&wheel = dlsym(preload, "memtrace_wheel_cudnn");
    need(wheel && wheel() == 90100, 3);
    *(void **)&count = dlvsym(runtime, "cudaGetDeviceCount", "libcudart.so.12");
    need(count && count(&got) == 0 && got == 1, 4);
    *(void **)&unknown = dlvsym(runtime, "cudaNobodyKnowsThis", "libcudart.so.12");
    need(unknown && unknown() == 0, 5);
    *(void **)&version = dlsym(runtime, "cudaRuntimeGetVersion");
    need(version && version(&got) == 0 && got == 12010, 6);
    runtime = dlopen("libcudart.faf08d9a.so.12", RTLD_NOW | RTLD_NOLOAD);
    need(runtime && dlvsym(runtime, "cudaOtherOne", "libcudart.so.12"), 8);
    *(void **)&count = dlvsym(runtime, "cudaGetDeviceCount", "libcudart.so.12");
    need(count && count(&got) == 0 && got == 1, 9);
    need(dlsym(dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD), "ncclCommResume") != NULL, 7);
}

/* CUDA 12 has smaller structures than CUDA 13: memory after them must not be written. */
static void use_structures_of_12(const struct mt_simulated_site *site)
{
    static unsigned char properties[2048], attributes[256];
    void *preload = dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL);
    int (*get)(void *, int), (*look)(void *, const void *), (*capture)(void *, int *, uint64_t *);
    int status = -1;
    uint64_t id[4] = {~UINT64_C(0), 1, 2, 3};

    need(preload != NULL, 1);
    *(void **)&get = dlsym(RTLD_DEFAULT, "cudaGetDeviceProperties_v2");
    memset(properties, 0xee, sizeof properties);
    need(get && get(properties, 0) == 0, 2);
    need(!strcmp((const char *)properties, "NVIDIA H200"), 7);
    need(properties[1031] != 0xee && properties[1032] == 0xee, 3); /* sizeof in CUDA 12 */
    need(*(int *)(void *)(properties + 388) == 132, 4);            /* multiProcessorCount */
    *(void **)&look = dlsym(RTLD_DEFAULT, "cudaPointerGetAttributes");
    memset(attributes, 0xee, sizeof attributes);
    need(look && look(attributes, &id) == 0 && attributes[23] == 0 && attributes[24] == 0xee, 5);
    *(void **)&capture = dlsym(RTLD_DEFAULT, "cudaStreamGetCaptureInfo");
    need(capture && capture(NULL, &status, id) == 0 && status == 0 && id[0] == 0 && id[1] == 1, 6);
}

/* Functions that return data, which a stub cannot do. */
static void use_memory_and_streams(const struct mt_simulated_site *site)
{
    int (*managed)(void **, size_t, unsigned), (*host)(void **, size_t), (*give_back)(void *);
    int (*stream)(void **, unsigned), (*destroy)(void *);
    unsigned char *memory = NULL;
    void *made = (void *)(uintptr_t)~UINT64_C(0);

    need(dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL) != NULL, 1);
    *(void **)&managed = dlsym(RTLD_DEFAULT, "cudaMallocManaged");
    *(void **)&host = dlsym(RTLD_DEFAULT, "cudaMallocHost");
    *(void **)&give_back = dlsym(RTLD_DEFAULT, "cudaFree");
    need(managed && managed((void **)&memory, 100000, 1) == 0 && memory, 2);
    memset(memory, 7, 100000);
    need(give_back && give_back(memory) == 0, 3);
    need(host && host((void **)&memory, 5000) == 0, 4);
    memset(memory, 7, 5000);
    *(void **)&stream = dlsym(RTLD_DEFAULT, "cudaStreamCreateWithFlags");
    *(void **)&destroy = dlsym(RTLD_DEFAULT, "cudaStreamDestroy");
    need(stream && stream(&made, 1) == 0 && destroy && destroy(made) == 0, 5);
}

/* A program that offloads activations pins more memory than the machine has. A copy from the device
 * replaces what the program wrote, and uses no page. */
static void pin_more_than_the_machine_has(const struct mt_simulated_site *site)
{
    enum { FROM_DEVICE = 2, HOST = 1, WRITTEN = 1 << 20, AT = 5000 };
    const size_t bytes = (size_t)100 << 30, part = (size_t)2 << 30;
    int (*host)(void **, size_t), (*give_back)(void *), (*look)(void *, const void *);
    int (*copy)(void *, const void *, size_t, int, void *), (*device)(void **, size_t);
    unsigned char *pinned = NULL, *memory = NULL, attributes[256];
    struct rusage use;

    need(dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL) != NULL, 1);
    *(void **)&host = dlsym(RTLD_DEFAULT, "cudaMallocHost");
    *(void **)&give_back = dlsym(RTLD_DEFAULT, "cudaFreeHost");
    *(void **)&look = dlsym(RTLD_DEFAULT, "cudaPointerGetAttributes");
    *(void **)&device = dlsym(RTLD_DEFAULT, "cudaMalloc");
    *(void **)&copy = dlsym(RTLD_DEFAULT, "cudaMemcpyAsync");
    need(host && give_back && look && device && copy, 2);
    need(host((void **)&pinned, bytes) == 0 && device((void **)&memory, WRITTEN) == 0, 3);
    need(look(attributes, pinned + AT) == 0 && attributes[0] == HOST, 4);
    memset(pinned, 7, WRITTEN);
    need(copy(pinned + AT, memory, part, FROM_DEVICE, NULL) == 0, 5);
    need(pinned[AT - 1] == 7 && pinned[AT] == 0 && pinned[WRITTEN - 1] == 0, 6);
    need(pinned[bytes - 1] == 0, 7);
    need(getrusage(RUSAGE_SELF, &use) == 0 && use.ru_maxrss < (1 << 20), 8);
    need(give_back(pinned) == 0 && give_back(pinned) != 0, 9);
}

/* Programs select code by the card's name and its compute capability, which the driver also
 * reports. */
static void ask_what_card_it_is(const struct mt_simulated_site *site)
{
    enum { MAJOR = 75, MINOR = 76 };
    static char properties[2048];
    int (*get)(void *, int), (*init)(unsigned), (*attribute)(int *, int, int), major = 0, minor = 9;

    setenv("MEMTRACE_SIMULATED_DEVICE", "A100 80 GB", 1);
    need(dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL) != NULL, 1);
    *(void **)&get = dlsym(RTLD_DEFAULT, "cudaGetDeviceProperties_v2");
    need(get && get(properties, 0) == 0 && !strcmp(properties, "NVIDIA A100-SXM4-80GB"), 2);
    *(void **)&init = dlsym(RTLD_DEFAULT, "cuInit");
    *(void **)&attribute = dlsym(RTLD_DEFAULT, "cuDeviceGetAttribute");
    need(init && init(0) == 0 && attribute, 3);
    need(attribute(&major, MAJOR, 0) == 0 && attribute(&minor, MINOR, 0) == 0, 4);
    need(major == 8 && minor == 0, 5);
}

/* Driver and runtime answer from the same table, and refuse what is not in it. */
static void ask_for_attributes(const struct mt_simulated_site *site)
{
    int (*driver)(int *, int, int), (*runtime)(int *, int, int), (*init)(unsigned), a, b;

    setenv("MEMTRACE_SIMULATED_DEVICE", "T4", 1);
    need(dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL) != NULL, 1);
    *(void **)&init = dlsym(RTLD_DEFAULT, "cuInit");
    *(void **)&driver = dlsym(RTLD_DEFAULT, "cuDeviceGetAttribute");
    *(void **)&runtime = dlsym(RTLD_DEFAULT, "cudaDeviceGetAttribute");
    need(init && driver && runtime && init(0) == 0, 2);
    for (int i = 0; i < 200; i++) {
        int refused = driver(&a, i, 0);
        need(refused == runtime(&b, i, 0), 3);
        need(refused ? refused == 1 : a == b, 4);
        need(i < 1 || i > 138 || !refused, 5);
    }
    need(driver(&a, 1, 0) == 0 && a == 1024 && driver(&a, 97, 0) == 0 && a == 65536, 6);
    need(driver(&a, 120, 0) == 0 && a == 0 && driver(&a, 35, 0) == 0 && a == 0,
         7); /* no clusters */
    need(driver(&a, 0, 0) == 1 && driver(&a, 160, 0) == 1 && driver(&a, 1, 5) == 101, 8);
}

/* A consumer card of capability 12.0 has space for fewer blocks than a B200 of 10.0. */
static void ask_for_blocks(const struct mt_simulated_site *site)
{
    enum { BLOCKS_PER_MULTIPROCESSOR = 106 };
    int (*attribute)(int *, int, int), (*init)(unsigned), blocks;

    setenv("MEMTRACE_SIMULATED_DEVICE", "RTX 5090", 1);
    need(dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL) != NULL, 1);
    *(void **)&init = dlsym(RTLD_DEFAULT, "cuInit");
    *(void **)&attribute = dlsym(RTLD_DEFAULT, "cuDeviceGetAttribute");
    need(init && attribute && init(0) == 0, 2);
    need(attribute(&blocks, BLOCKS_PER_MULTIPROCESSOR, 0) == 0 && blocks == 24, 3);
}

/* A program that queries a stream in a loop. Returns the last answer; the first is "not ready". */
static int poll_stream(int (*query)(void *), void *stream)
{
    enum { NOT_READY = 600, MOST = 1000 };
    int code = NOT_READY;

    if (query(stream) != NOT_READY)
        return -1;
    for (int i = 0; code == NOT_READY && i < MOST; i++)
        code = query(stream);
    return code;
}

/* Every call with which a program waits for its device completes the events before it. */
static void wait_for_events(const struct mt_simulated_site *site)
{
    enum { NOT_READY = 600, FROM_DEVICE = 2, WAYS = 8 };
    int (*make)(void **), (*record)(void *, void *), (*query)(void *), (*wait)(void *);
    int (*stream)(void **, unsigned), (*of_stream)(void *), (*behind)(void *, void *, unsigned);
    int (*all)(void), (*give_back)(void *), (*host)(void **, size_t), (*seen)(void *);
    int (*copy)(void *, const void *, size_t, int, void *);
    void *event = NULL, *side = NULL, *other = NULL, *pinned = NULL;
    char pageable[8];

    need(dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL) != NULL, 1);
    *(void **)&make = dlsym(RTLD_DEFAULT, "cudaEventCreate");
    *(void **)&record = dlsym(RTLD_DEFAULT, "cudaEventRecord");
    *(void **)&query = dlsym(RTLD_DEFAULT, "cudaEventQuery");
    *(void **)&wait = dlsym(RTLD_DEFAULT, "cudaEventSynchronize");
    *(void **)&stream = dlsym(RTLD_DEFAULT, "cudaStreamCreateWithFlags");
    *(void **)&of_stream = dlsym(RTLD_DEFAULT, "cudaStreamSynchronize");
    *(void **)&seen = dlsym(RTLD_DEFAULT, "cudaStreamQuery");
    *(void **)&behind = dlsym(RTLD_DEFAULT, "cudaStreamWaitEvent");
    *(void **)&all = dlsym(RTLD_DEFAULT, "cudaDeviceSynchronize");
    *(void **)&give_back = dlsym(RTLD_DEFAULT, "cudaFree");
    *(void **)&host = dlsym(RTLD_DEFAULT, "cudaMallocHost");
    *(void **)&copy = dlsym(RTLD_DEFAULT, "cudaMemcpyAsync");
    need(make && make(&event) == 0 && stream(&side, 1) == 0 && stream(&other, 1) == 0, 2);
    need(query(event) == 0 && host(&pinned, 8) == 0, 3);
    for (int way = 0; way < WAYS; way++) {
        need(record(event, side) == 0 && query(event) == NOT_READY, 10 + way);
        need(copy(pinned, pinned, 8, FROM_DEVICE, side) == 0 && query(event) == NOT_READY,
             20 + way);
        need(behind(other, event, 0) == 0 && of_stream(NULL) == 0 && query(event) == NOT_READY,
             30 + way);
        need((way == 0   ? wait(event)
              : way == 1 ? of_stream(side)
              : way == 2 ? of_stream(other)
              : way == 3 ? all()
              : way == 4 ? give_back(NULL)
              : way == 5 ? copy(pageable, pinned, 8, FROM_DEVICE, side)
              : way == 6 ? poll_stream(seen, side)
                         : record(event, NULL) || of_stream(NULL)) == 0,
             40 + way);
        need(query(event) == 0, 50 + way);
    }
}

static void never_wait_for_events(const struct mt_simulated_site *site)
{
    int (*make)(void **), (*record)(void *, void *), (*query)(void *);
    void *event = NULL;

    setenv("MEMTRACE_SIMULATED_EARLY_RELEASE", "1", 1);
    need(dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL) != NULL, 1);
    *(void **)&make = dlsym(RTLD_DEFAULT, "cudaEventCreate");
    *(void **)&record = dlsym(RTLD_DEFAULT, "cudaEventRecord");
    *(void **)&query = dlsym(RTLD_DEFAULT, "cudaEventQuery");
    need(make && make(&event) == 0 && record(event, NULL) == 0 && query(event) == 0, 2);
}

/* NVML subtracts the memory of other processes, but not below zero. */
static void ask_a_small_card_for_memory(const struct mt_simulated_site *site)
{
    struct {
        unsigned version;
        unsigned long long total, reserved, free, used;
    } second = {.version = 0x02000028};
    unsigned long long first[3]; /* total, free, used */
    int (*by_index)(unsigned, void **), (*memory)(void *, void *), (*memory_v2)(void *, void *);
    void *device = NULL;

    setenv("MEMTRACE_SIMULATED_MEMORY", "536870912", 1);
    need(dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL) != NULL, 1);
    *(void **)&by_index = dlsym(RTLD_DEFAULT, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&memory = dlsym(RTLD_DEFAULT, "nvmlDeviceGetMemoryInfo");
    *(void **)&memory_v2 = dlsym(RTLD_DEFAULT, "nvmlDeviceGetMemoryInfo_v2");
    need(by_index && memory && memory_v2 && by_index(0, &device) == 0, 2);
    need(memory(device, first) == 0 && first[0] == 536870912, 3);
    need(first[1] == 0 && first[2] == first[0], 4);
    need(memory_v2(device, &second) == 0 && second.free == 0, 5);
    need(second.used + second.reserved == second.total, 6);
}

static void ask_for_the_time(const struct mt_simulated_site *site)
{
    int (*elapsed)(float *, void *, void *);
    float ms = 0;

    need(dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL) != NULL, 1);
    *(void **)&elapsed = dlsym(RTLD_DEFAULT, "cudaEventElapsedTime");
    need(elapsed && elapsed(&ms, NULL, NULL) == 0 && ms >= 1 && ms <= 1, 2);
}

/* PyTorch takes an error for its own failure, and a state other than 0 for an existing fabric. */
static void ask_for_a_fabric(const struct mt_simulated_site *site)
{
    unsigned char information[48];
    int (*fabric)(void *, void *);

    need(dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL) != NULL, 1);
    *(void **)&fabric = dlsym(RTLD_DEFAULT, "nvmlDeviceGetGpuFabricInfoV");
    memset(information, 3, sizeof information);
    need(fabric && fabric(NULL, information) == 0 && information[28] == 0, 2);
    need(information[29] == 3 && information[0] == 3, 3);
}

/* The matrix products of CUTLASS for Hopper and later describe their tensors to the driver. */
static void describe_tensors(const struct mt_simulated_site *site)
{
    static const char *const names[] = {"cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col",
                                        "cuTensorMapEncodeIm2colWide"};
    unsigned char map[129];
    int (*look_up)(const char *, void **, int, uint64_t, void *), (*encode)(void *, int, unsigned);

    need(dlopen(site->preload, RTLD_NOW | RTLD_GLOBAL) != NULL, 1);
    *(void **)&look_up = dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        need(look_up && look_up(names[i], (void **)&encode, 12080, 0, NULL) == 0, 2);
        memset(map, 7, sizeof map);
        need(encode(map, 0, 2) == 0 && map[0] == 0 && map[127] == 0 && map[128] == 7, 3);
    }
    need(look_up("cuTensorMapReplaceAddress", (void **)&encode, 12080, 0, NULL) == 0, 4);
    map[0] = 7;
    need(encode(map, 0, 0) == 0 && map[0] == 7, 5);
}

TEST(test_libraries_work)
{
    struct mt_simulated_site site = prepared();

    assert_string_equal(site.torch_version, "2.4.1+cu121");
    assert_string_equal(site.cuda_version, "12.1");
    assert_string_equal(site.python, python);
    assert_string_equal(site.python_from, "the command");
    assert_true(site.library_count >= 5 && site.simulated_count > 200);
    in_a_child(use_libraries, &site);
    in_a_child(use_structures_of_12, &site);
    in_a_child(use_memory_and_streams, &site);
    in_a_child(ask_what_card_it_is, &site);
    in_a_child(ask_for_attributes, &site);
    in_a_child(ask_for_blocks, &site);
    in_a_child(ask_a_small_card_for_memory, &site);
    in_a_child(ask_for_the_time, &site);
    in_a_child(pin_more_than_the_machine_has, &site);
    in_a_child(wait_for_events, &site);
    in_a_child(never_wait_for_events, &site);
    in_a_child(ask_for_a_fabric, &site);
    in_a_child(describe_tensors, &site);
}

TEST(test_cache_notices_changes)
{
    struct mt_simulated_site first = prepared(), second = prepared();
    char facts[PATH_MAX + 8];

    assert_false(second.was_made);
    assert_string_equal(first.folder, second.folder);
    assert_int_equal(second.function_count, first.function_count);
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    utimensat(0, format("%s/torch/lib/libtorch_cuda.so", root), times, 0);
    second = prepared();
    assert_true(second.was_made);
    assert_string_not_equal(first.folder, second.folder);
    python_says(torch_lines("2.4.1+cu124", "12.4"));
    assert_true(prepared().was_made);
    python_says(torch_lines("2.4.1+cu121", "12.1"));
    assert_false(prepared().was_made);

    write_extension("cudaAnotherOne");
    second = prepared();
    assert_true(second.was_made);

    snprintf(facts, sizeof facts, "%s/facts", second.folder);
    assert_int_equal(unlink(facts), 0); /* cut short */
    assert_true(prepared().was_made);
    assert_int_equal(unlink(second.preload), 0);
    assert_true(prepared().was_made);
    assert_int_equal(access(second.preload, R_OK), 0);
}

static unsigned count_entries(const char *folder)
{
    DIR *entries = opendir(folder);
    unsigned count = 0;

    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;)
        count += entry->d_name[0] != '.';
    if (entries)
        closedir(entries);
    return count;
}

TEST(test_many_at_once)
{
    enum { PROCESSES = 8 };
    pid_t children[PROCESSES];
    struct mt_simulated_site site;
    struct mt_error error;

    snprintf(cache, sizeof cache, "%s/race", root);
    for (int i = 0; i < PROCESSES; i++)
        if ((children[i] = fork()) == 0)
            _exit(prepare(&site, &error) == MT_OK ? 0 : 1);
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        waitpid(children[i], &status, 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_entries(cache), 1); /* no incomplete files remain */
    assert_false(prepared().was_made);
    snprintf(cache, sizeof cache, "%s/cache", root);
}

static void expect_failure(enum mt_status expected, const char *words)
{
    struct mt_simulated_site site;
    struct mt_error error;

    assert_int_equal(prepare(&site, &error), expected);
    if (!strstr(error.text, words))
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
    assert_null(strchr(error.text, '\n'));
}

TEST(test_no_room)
{
    struct rlimit before;

    snprintf(cache, sizeof cache, "%s/full", root);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    struct rlimit none = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
    expect_failure(MT_ERR_OUTPUT, "cannot write the simulated libraries to");
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(count_entries(cache), 0);

    snprintf(cache, sizeof cache, "%s/python3/cache", root); /* below a file */
    expect_failure(MT_ERR_OUTPUT, "/python3/cache");
    snprintf(cache, sizeof cache, "%s/with space", root);
    expect_failure(MT_ERR_OUTPUT, "LD_PRELOAD");
    snprintf(cache, sizeof cache, "%s/cache", root);
}

static mode_t mode_of(const char *path)
{
    struct stat info;

    assert_int_equal(lstat(path, &info), 0);
    return info.st_mode & 0777;
}

/* Libraries that another user could replace would run in the user's programs. */
TEST(test_only_the_owner_writes)
{
    snprintf(cache, sizeof cache, "%s/shared", root);
    assert_int_equal(mkdir(cache, 0700), 0);
    assert_int_equal(chmod(cache, 0777), 0);
    expect_failure(MT_ERR_OUTPUT, "other users can write to");
    assert_int_equal(chmod(cache, 0775), 0);
    struct mt_simulated_site site = prepared();
    assert_int_equal(mode_of(cache), 0755);
    assert_int_equal(chmod(site.folder, 0770), 0);
    assert_true(prepared().was_made); /* what was there is removed */
    assert_int_equal(mode_of(site.folder), 0700);
    snprintf(cache, sizeof cache, "%s/cache", root);
}

/* A link in the place of a site, and a damaged site with a file of the user. */
TEST(test_documents_stay)
{
    char aside[PATH_MAX + 8], file[PATH_MAX + 16];

    snprintf(cache, sizeof cache, "%s/documents-cache", root);
    struct mt_simulated_site site = prepared();
    mkdir(format("%s/documents", root), 0700);
    write_text(format("%s/documents/thesis.tex", root), "years", 0600);
    write_text(format("%s/documents/facts", root), "years", 0600);
    snprintf(aside, sizeof aside, "%s-aside", site.folder);
    assert_int_equal(rename(site.folder, aside), 0);
    assert_int_equal(symlink(format("%s/documents", root), site.folder), 0);
    assert_true(prepared().was_made);
    assert_int_equal(count_entries(format("%s/documents", root)), 2);
    assert_int_equal(access(site.preload, R_OK), 0);

    snprintf(file, sizeof file, "%s/weights.pt", site.folder);
    write_text(file, "x", 0600);
    assert_false(prepared().was_made);
    assert_int_equal(unlink(site.preload), 0);
    expect_failure(MT_ERR_OUTPUT, "has files that memtrace did not make; remove it");
    assert_int_equal(access(file, R_OK), 0);
    assert_int_equal(unlink(file), 0);
    assert_true(prepared().was_made);
    snprintf(cache, sizeof cache, "%s/cache", root);
}

/* As after a power failure. */
TEST(test_cut_library)
{
    struct mt_simulated_site site = prepared(), read;
    char file[PATH_MAX + 16];

    assert_true(mt_site_facts_read("14 4 3 2\n", &read));
    assert_int_equal(read.simulated_count, 3);
    assert_false(mt_site_facts_read("14 4 3 2", &read));
    assert_false(mt_site_facts_read("14 4 -4 2\n", &read));
    assert_false(mt_site_facts_read("14 4 3\n", &read));

    snprintf(file, sizeof file, "%s/libcuda.so.1", site.folder);
    assert_false(prepared().was_made);
    assert_int_equal(truncate(file, 100), 0);
    assert_true(prepared().was_made);
}

TEST(test_what_cannot_be_simulated)
{
    python_says("");
    expect_failure(MT_ERR_USAGE, "has no PyTorch; a dry run needs PyTorch: pip install torch");
    python_says("memtrace-jax=yes");
    expect_failure(MT_ERR_USAGE, "has JAX and no PyTorch");
    python_says(torch_lines("2.11.0+cpu", ""));
    expect_failure(MT_ERR_UNSUPPORTED, "is built without CUDA");
    python_says(torch_lines("2.3.1+cu121", "12.1"));
    expect_failure(MT_ERR_UNSUPPORTED, "too old");
    python_says(torch_lines("2.5.0+cu118", "11.8"));
    expect_failure(MT_ERR_UNSUPPORTED, "CUDA 11.8");
    python_says("memtrace-torch=../torch\nmemtrace-torch-__version__=2.4.1+cu121\n"
                "memtrace-torch-cuda=12.1");
    expect_failure(MT_ERR_IO, "not an absolute path");
    write_text(python, "#!/bin/sh\necho; echo memtrace-version=3.8; echo memtrace-executable=x\n",
               0700);
    expect_failure(MT_ERR_UNSUPPORTED, "is Python 3.8");
    write_text(python, "#!/bin/sh\nexit 1\n", 0700);
    expect_failure(MT_ERR_IO, "did not report the folder of its packages");
    python_says(torch_lines("2.4.1+cu121", "12.1"));
}

TEST(test_damaged_library)
{
    const char *path = format("%s/torch/lib/libdamaged.so", root);

    write_text(path, "no library", 0600);
    expect_failure(MT_ERR_FORMAT, "libdamaged.so");
    unlink(path);
    assert_int_equal(prepared().was_made, false);
}

TEST(test_tidy_keeps_eight)
{
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char path[PATH_MAX], other[PATH_MAX];

    snprintf(cache, sizeof cache, "%s/many", root);
    mkdir(cache, 0700);
    for (int i = 0; i < 12; i++) {
        snprintf(path, sizeof path, i < 2 ? "%s/making-%d" : "%s/%032x", cache, (unsigned)i);
        mkdir(path, 0700);
        if (i == 0) /* half of the notes of a program that was killed */
            write_text(format("%s/.notes.7.half", path), "{", 0600);
        old[1].tv_sec++;
        utimensat(0, path, i < 11 ? old : NULL, 0);
    }
    snprintf(other, sizeof other, "%s/not_of_memtrace", cache);
    mkdir(other, 0700);
    utimensat(0, other, old, 0);
    struct mt_simulated_site site = prepared();
    assert_int_equal(rmdir(other), 0); /* is left alone */
    assert_int_equal(count_entries(cache), MT_SITES_KEPT);
    assert_int_equal(access(site.preload, R_OK), 0);
    assert_int_equal(access(path, R_OK), 0); /* used a moment ago */
    snprintf(cache, sizeof cache, "%s/cache", root);
}

int main(void)
{
    return run_tests_of_file(make_root, remove_root);
}
