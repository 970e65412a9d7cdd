/* Finds what allocated driver memory outside the framework: libraries by the files of native
 * frames, communicators by NCCL's ranges. */
#include "cmocka_all.h"

#include "driver_run.h"
#include "libraries.h"

#define DRIVER_CALL                                                                                \
    {                                                                                              \
        "cuMemAlloc_v2", "[libcuda.so.1]"                                                          \
    }

enum { MAX_FRAMES = 6 };

struct line {
    const char *function, *file;
};

static uint32_t text_of(struct mt_symbols *symbols, const char *text)
{
    uint32_t id;

    assert_int_equal(mt_symbols_string(symbols, text, strlen(text), &id), MT_OK);
    return id;
}

/* Lines from the innermost out. */
static uint32_t add_stack(struct mt_symbols *symbols, const struct line *lines, size_t count)
{
    uint32_t stack = MT_NO_ID, frame;

    while (count-- > 0) {
        bool is_python = strstr(lines[count].file, ".py") != NULL;

        assert_int_equal(mt_symbols_frame(symbols, text_of(symbols, lines[count].function),
                                          text_of(symbols, lines[count].file), is_python ? 7 : 0,
                                          &frame),
                         MT_OK);
        assert_int_equal(mt_symbols_stack(symbols, stack, frame, &stack), MT_OK);
    }
    return stack;
}

TEST(libraries_are_identified_by_their_files)
{
    static const struct {
        struct line lines[MAX_FRAMES];
        const char *library, *call, *what;
    } cases[] = {
        {{DRIVER_CALL,
          {"+0x1234", "[libnccl.so.2]"},
          {"ncclCommSplit", "[libnccl.so.2]"},
          {"c10d::ProcessGroupNCCL::getNCCLComm", "[libtorch_cuda.so]"},
          {"all_reduce", "/x/train.py"}},
         "NCCL",
         "ncclCommSplit",
         "communicator"},
        {{DRIVER_CALL,
          {"cudaMalloc", "[libcudart.so.13]"},
          {"cublasCreate_v2", "[libcublas.so.13]"},
          {"at::cuda::getCurrentCUDABlasHandle", "[libtorch_cuda.so]"}},
         "cuBLAS",
         "cublasCreate_v2",
         "handle"},
        {{{"cuMemCreate", "[libmemtrace-simulated-cuda.so]"}, /* a dry run */
          {"+0x1234", "[libmemtrace-simulated-cuda.so]"},
          {"ncclCommInitRankConfig", "[libmemtrace-simulated-cuda.so]"},
          {"c10d::ProcessGroupNCCL::getNCCLComm", "[libtorch_cuda.so]"}},
         "NCCL",
         "ncclCommInitRankConfig",
         "communicator"},
        {{{"cuMemCreate", "[libmemtrace-simulated-cuda.so]"}, /* the same without its symbols */
          {"+0x1234", "[libmemtrace-simulated-cuda.so]"},
          {"ncclCommSplit", "[libmemtrace-inject.so]"},
          {"c10d::NCCLComm::split", "[libtorch_cuda.so]"}},
         "NCCL",
         "ncclCommSplit",
         "communicator"},
        {{{"+0x77", "/usr/lib/libcuda.so.1"},
          {"+0x12", "/opt/x/libcudnn_engines_precompiled.so.9 (build id 5e70)"},
          {"+0x13", "/opt/x/libtorch_cuda.so"}},
         "cuDNN",
         NULL,
         NULL},
        {{DRIVER_CALL,
          {"nvshmemi_init", "[libnvshmem_host.so.3]"},
          {"nvshmem_init_thread", "[libnvshmem_host.so.3]"}},
         "NVSHMEM",
         "nvshmem_init_thread",
         "symmetric heap"},
        {{DRIVER_CALL, {"cudaGraphInstantiate", "[libcudart.so.13]"}, {"f", "[libtorch_cuda.so]"}},
         "CUDA graphs",
         "cudaGraphInstantiate",
         NULL},
        {{DRIVER_CALL,
          {"ncclCuMemAlloc", "/src/include/alloc.h"},
          {"initChannel(ncclComm*, int)", "/src/channel.cc"},
          {"ncclCommInitRankConfig", "/src/init.cc"},
          {"c10d::NCCLComm::create", "[libtorch_cuda.so]"}},
         "NCCL",
         "ncclCommInitRankConfig",
         "communicator"},
        /* a build of PyTorch that NCCL is linked into */
        {{DRIVER_CALL,
          {"p2pSendSetup", "[libtorch_cuda.so]"},
          {"ncclTransportP2pSetup", "[libtorch_cuda.so]"},
          {"+0x1234", "[libtorch_cuda.so]"},
          {"ncclCommInitRankConfig", "[libtorch_cuda.so]"},
          {"c10d::NCCLComm::create", "[libtorch_cuda.so]"}},
         "NCCL",
         "ncclCommInitRankConfig",
         "communicator"},
        {{DRIVER_CALL, {"at::f", "[libtorch_cuda.so]"}, {"c10::g", "[libc10_cuda.so]"}},
         "PyTorch",
         "c10::g",
         NULL},
        /* a function of the program, whose name begins like NCCL's */
        {{DRIVER_CALL, {"ncclScratchTake", "/src/mine.cc"}, {"main", "/src/mine.cc"}},
         NULL,
         NULL,
         NULL},
        {{DRIVER_CALL,
          {"ncclCuMemAlloc", "/src/include/alloc.h"},
          {"ncclAllReduce", "/src/collectives.cc"},
          {"ncclWrapper", "/src/mine.cc"}},
         "NCCL",
         "ncclAllReduce",
         "connections"},
        {{DRIVER_CALL,
          {"ncclProxyService(void*)", "/src/proxy.cc"},
          {"start_thread", "[libc.so.6]"}},
         "NCCL",
         "ncclProxyService(void*)",
         "connections"},
        {{DRIVER_CALL, {"mine", "/src/mine.cc"}, {"ncclAllReduce", "[libnccl.so.2]"}},
         NULL,
         NULL,
         NULL},
        {{DRIVER_CALL, {"take", "[libmine.so]"}, {"f", "[libtorch_cuda.so]"}}, NULL, NULL, NULL},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        struct mt_symbols symbols;
        size_t count = 0;

        assert_int_equal(mt_symbols_init(&symbols), MT_OK);
        while (count < MAX_FRAMES && cases[i].lines[count].file)
            count++;
        struct mt_stack_owner owner =
            mt_stack_owner(&symbols, add_stack(&symbols, cases[i].lines, count));
        assert_true(!owner.library == !cases[i].library);
        if (cases[i].library)
            assert_string_equal(owner.library, cases[i].library);
        assert_int_equal(owner.module != MT_NO_ID, !cases[i].library);
        assert_int_equal(owner.call != MT_NO_ID, cases[i].call != NULL);
        if (cases[i].call)
            assert_string_equal(mt_symbols_text(&symbols, symbols.frames[owner.call].function),
                                cases[i].call);
        assert_true(!owner.what == !cases[i].what);
        if (cases[i].what)
            assert_string_equal(owner.what, cases[i].what);
        mt_symbols_release(&symbols);
    }
}

/* A Python stack is not a native frame, nor is a missing stack. */
TEST(python_frames_name_no_library)
{
    static const struct line line = {"libnccl", "/x/libnccl.py"};
    struct mt_symbols symbols;

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    struct mt_stack_owner owner = mt_stack_owner(&symbols, add_stack(&symbols, &line, 1));
    assert_null(owner.library);
    assert_int_equal(owner.module, MT_NO_ID);
    owner = mt_stack_owner(&symbols, MT_NO_ID);
    assert_null(owner.library);
    mt_symbols_release(&symbols);
}

static void range(struct run *run, const char *name, bool push)
{
    add(run, DRIVER, push ? MT_EVENT_PHASE_PUSH : MT_EVENT_PHASE_POP, 0, 0)->name =
        add_text(run, name);
}

/* NCCL allocates in one of its own calls, on the program's thread and on one of NCCL's. */
static void take_in(struct run *run, const char *call, uint64_t bytes, uint32_t stack)
{
    range(run, call, true);
    add(run, DRIVER, MT_EVENT_ALLOC, OTHER + run->count * MT_GIB, bytes)->stack = stack;
    add(run, DRIVER, MT_EVENT_ALLOC, OTHER + run->count * MT_GIB, MT_MIB)->thread = 2;
    range(run, call, false);
}

static void finish(struct run *run)
{
    one_segment(run);
    analyze(run);
    assert_int_equal(run->report->driver_count, 1);
}

static const struct mt_owner_use *owner_of(const struct run *run, const char *call)
{
    const struct mt_driver_report *driver = &run->report->drivers[0];

    for (uint32_t i = 0; i < driver->owner_count; i++)
        if (driver->owners[i].call && !strcmp(driver->owners[i].call, call))
            return &driver->owners[i];
    fail_msg("nothing was taken in %s", call);
    return NULL;
}

static uint64_t sum_of_owners(const struct run *run)
{
    const struct mt_driver_report *driver = &run->report->drivers[0];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < driver->owner_count; i++)
        sum += driver->owners[i].bytes;
    return sum;
}

/* Traces without native frames: NCCL's ranges identify communicators. Memory outside of any range
 * is not guessed. */
TEST(ranges_identify_communicators)
{
    struct run run;

    begin(&run);
    range(&run, "backward", true);
    take_in(&run, "NCCL: ncclCommInitRankConfig", 8 * MT_MIB, MT_NO_ID);
    take_in(&run, "NCCL: ncclAllGather", 3 * MT_MIB, MT_NO_ID);
    take_in(&run, "NCCL: ncclCommSplit", 5 * MT_MIB, MT_NO_ID);
    take_in(&run, "NCCL: ncclAllReduce", 2 * MT_MIB, MT_NO_ID);
    add(&run, DRIVER, MT_EVENT_ALLOC, OTHER, 64 * MT_MIB);
    range(&run, "backward", false);
    finish(&run);
    const struct mt_driver_report *driver = &run.report->drivers[0];
    assert_int_equal(driver->communicator_count, 2);
    assert_int_equal(driver->owner_count, 5);
    assert_int_equal(sum_of_owners(&run), driver->then.bytes - driver->then.framework_bytes);
    assert_null(driver->owners[0].library);
    assert_int_equal(driver->owners[0].bytes, 64 * MT_MIB);
    assert_int_equal(owner_of(&run, "ncclCommInitRankConfig")->communicator, 0);
    assert_int_equal(owner_of(&run, "ncclCommInitRankConfig")->bytes, 9 * MT_MIB);
    assert_int_equal(owner_of(&run, "ncclAllGather")->communicator, 0);
    assert_int_equal(owner_of(&run, "ncclCommSplit")->communicator, 1);
    assert_int_equal(owner_of(&run, "ncclAllReduce")->communicator, MT_NO_COMMUNICATOR);
    assert_null(strstr(run.text.data, "backward of"));
    assert_null(strstr(run.text.data, "autograd engine"));
    assert_non_null(strstr(run.text.data, "NCCL, communicator 2 of 2 (ncclCommSplit)"));
    assert_non_null(strstr(run.text.data, "a library outside the framework"));
    end(&run);
}

/* One call makes a communicator per device: none of them gets a number, nor do later ones. */
TEST(one_call_may_make_many_communicators)
{
    struct run run;

    begin(&run);
    take_in(&run, "NCCL: ncclCommInitAll", 8 * MT_MIB, MT_NO_ID);
    take_in(&run, "NCCL: ncclCommSplit", 5 * MT_MIB, MT_NO_ID);
    take_in(&run, "NCCL: ncclAllReduce", 3 * MT_MIB, MT_NO_ID);
    finish(&run);
    assert_int_equal(run.report->drivers[0].communicator_count, 0);
    assert_int_equal(owner_of(&run, "ncclCommInitAll")->communicator, MT_NO_COMMUNICATOR);
    assert_int_equal(owner_of(&run, "ncclCommSplit")->communicator, MT_NO_COMMUNICATOR);
    assert_int_equal(owner_of(&run, "ncclAllReduce")->communicator, MT_NO_COMMUNICATOR);
    expect_text(&run, "NCCL, communicators, one a device (ncclCommInitAll)");
    end(&run);
}

static struct mt_event *tell(struct run *run, const char *call, uint64_t id, uint64_t ranks,
                             uint64_t rank)
{
    struct mt_event *event = add(run, DRIVER, MT_EVENT_COMMUNICATOR, id, ranks);

    event->aux_bytes = rank;
    event->name = add_text(run, call);
    return event;
}

static void take_told(struct run *run, const char *call, uint64_t bytes, uint64_t id,
                      uint64_t ranks, uint64_t rank)
{
    range(run, call, true);
    add(run, DRIVER, MT_EVENT_ALLOC, OTHER + run->count * MT_GIB, bytes);
    tell(run, call, id, ranks, rank);
    range(run, call, false);
}

static void buffer(struct run *run, uint8_t kind, uint64_t id, uint64_t bytes)
{
    add(run, DRIVER, kind, OTHER, bytes)->aux_bytes = id;
}

/* NCCL reports ids and ranks, so memory of collective operations also has a communicator. */
TEST(ids_identify_the_communicator_of_connections)
{
    struct run run;

    begin(&run);
    take_told(&run, "NCCL: ncclCommInitRankConfig", 8 * MT_MIB, 0xa, 16, 3);
    take_told(&run, "NCCL: ncclCommInitRank", 4 * MT_MIB, 0xb, 2, 1);
    take_told(&run, "NCCL: ncclAllReduce", 3 * MT_MIB, 0xb, 0, 0);
    tell(&run, "NCCL: ncclCommDestroy", 0xc, 5, 5); /* impossible */
    buffer(&run, MT_EVENT_BUFFER_REGISTERED, 0xb, 5 * MT_MIB);
    buffer(&run, MT_EVENT_BUFFER_DEREGISTERED, 0xb, 5 * MT_MIB);
    buffer(&run, MT_EVENT_BUFFER_REGISTERED, 0xb, 6 * MT_MIB);
    buffer(&run, MT_EVENT_BUFFER_REGISTERED, 0, MT_MIB); /* owner unknown */
    finish(&run);
    const struct mt_driver_report *driver = &run.report->drivers[0];
    assert_int_equal(driver->communicator_count, 2);
    assert_int_equal(driver->told_communicator_count, 3);
    assert_int_equal(driver->communicators[0].id, 0xa);
    assert_int_equal(driver->communicators[0].communicator, 0);
    assert_int_equal(driver->communicators[0].ranks, 16);
    assert_int_equal(driver->communicators[0].rank, 3);
    assert_int_equal(driver->communicators[0].registered_peak_bytes, 0);
    assert_int_equal(driver->communicators[1].communicator, 1);
    assert_int_equal(driver->communicators[1].registered_peak_bytes, 6 * MT_MIB);
    assert_int_equal(driver->communicators[2].communicator, MT_NO_COMMUNICATOR);
    assert_int_equal(driver->communicators[2].ranks, 0);
    assert_int_equal(owner_of(&run, "ncclAllReduce")->communicator, 1);
    assert_non_null(strstr(run.text.data, "NCCL, communicator 1 of 2 with 16 ranks"));
    assert_non_null(strstr(run.text.data, "Buffers that the program registered with"));
    assert_non_null(strstr(run.text.data, "6.00 MiB (6,291,456 B) at"));
    end(&run);
}

/* NCCL 2.28 reports the id of a child at its first operation. If there are two children, none is
 * guessed. */
TEST(the_one_maker_without_an_id_made_the_one_that_is_left)
{
    struct run run;

    begin(&run);
    take_told(&run, "NCCL: ncclCommInitRankConfig", 8 * MT_MIB, 0xa, 1, 0);
    take_in(&run, "NCCL: ncclCommSplit", 4 * MT_MIB, MT_NO_ID);
    take_told(&run, "NCCL: ncclAllReduce", 3 * MT_MIB, 0xb, 0, 0);
    finish(&run);
    assert_int_equal(owner_of(&run, "ncclAllReduce")->communicator, 1);
    assert_int_equal(run.report->drivers[0].communicators[1].ranks, 0);
    end(&run);
    begin(&run);
    take_in(&run, "NCCL: ncclCommSplit", 4 * MT_MIB, MT_NO_ID);
    take_in(&run, "NCCL: ncclCommSplit", 4 * MT_MIB, MT_NO_ID);
    take_told(&run, "NCCL: ncclAllReduce", 3 * MT_MIB, 0xb, 0, 0);
    take_told(&run, "NCCL: ncclAllGather", 2 * MT_MIB, 0xc, 0, 0);
    finish(&run);
    assert_int_equal(owner_of(&run, "ncclAllReduce")->communicator, MT_NO_COMMUNICATOR);
    assert_int_equal(owner_of(&run, "ncclAllGather")->communicator, MT_NO_COMMUNICATOR);
    end(&run);
}

/* A process that drives two devices has two ranks, and NCCL reports the same id for both. Nothing
 * shows which rank an operation belongs to. */
TEST(two_ranks_of_a_process_share_an_id)
{
    struct run run;

    begin(&run);
    take_told(&run, "NCCL: ncclCommInitRank", 8 * MT_MIB, 0xa, 2, 0);
    take_told(&run, "NCCL: ncclCommInitRank", 4 * MT_MIB, 0xa, 2, 1);
    take_told(&run, "NCCL: ncclAllReduce", 3 * MT_MIB, 0xa, 2, 1);
    finish(&run);
    const struct mt_driver_report *driver = &run.report->drivers[0];
    assert_int_equal(driver->communicator_count, 2);
    assert_int_equal(driver->told_communicator_count, 1);
    assert_int_equal(driver->communicators[0].communicator, MT_NO_COMMUNICATOR);
    assert_int_equal(driver->communicators[0].ranks, 0);
    assert_int_equal(owner_of(&run, "ncclAllReduce")->communicator, MT_NO_COMMUNICATOR);
    assert_non_null(strstr(run.text.data, "NCCL, communicator 2 of 2"));
    end(&run);
}

/* Before 2.26: ranks, and no id. */
TEST(ranks_without_an_id)
{
    struct run run;

    begin(&run);
    take_told(&run, "NCCL: ncclCommInitRank", 8 * MT_MIB, 0, 4, 2);
    tell(&run, "NCCL: ncclCommInitRank", 0, 4, 2); /* outside of its range: no communicator */
    finish(&run);
    assert_int_equal(run.report->drivers[0].told_communicator_count, 1);
    assert_int_equal(run.report->drivers[0].communicators[0].communicator, 0);
    assert_int_equal(run.report->drivers[0].communicators[0].id, 0);
    assert_non_null(strstr(run.text.data, "NCCL, communicator with 4 ranks"));
    end(&run);
}

/* Native frames take precedence over ranges: another library may allocate while NCCL works. */
TEST(native_frames_go_before_ranges)
{
    static const struct line cublas[] = {DRIVER_CALL, {"cublasCreate_v2", "[libcublas.so.13]"}};
    struct run run;

    begin(&run);
    uint32_t stack = add_stack(&run.source.source.symbols, cublas, MT_ARRAY_LEN(cublas));
    take_in(&run, "NCCL: ncclCommInitRank", 8 * MT_MIB, stack);
    finish(&run);
    assert_string_equal(owner_of(&run, "cublasCreate_v2")->library, "cuBLAS");
    assert_int_equal(owner_of(&run, "cublasCreate_v2")->bytes, 8 * MT_MIB);
    assert_int_equal(owner_of(&run, "ncclCommInitRank")->bytes, MT_MIB);
    assert_non_null(strstr(run.text.data, "cuBLAS, handle (cublasCreate_v2)"));
    end(&run);
}

/* Its end was lost: not all memory in it is NCCL's. */
TEST(a_range_without_an_end_is_ignored)
{
    struct run run;

    begin(&run);
    range(&run, "NCCL: ncclCommInitRankConfig", true);
    add(&run, DRIVER, MT_EVENT_ALLOC, OTHER, 64 * MT_MIB);
    finish(&run);
    assert_int_equal(run.report->drivers[0].owner_count, 1);
    assert_null(run.report->drivers[0].owners[0].library);
    assert_int_equal(run.report->drivers[0].owners[0].communicator, MT_NO_COMMUNICATOR);
    end(&run);
}

TEST(other_files_are_named)
{
    static const struct line mine[] = {DRIVER_CALL, {"take", "[libmine.so.1]"}};
    struct run run;

    begin(&run);
    add(&run, DRIVER, MT_EVENT_ALLOC, OTHER, 8 * MT_MIB)->stack =
        add_stack(&run.source.source.symbols, mine, MT_ARRAY_LEN(mine));
    finish(&run);
    assert_string_equal(run.report->drivers[0].owners[0].library, "libmine.so.1");
    assert_null(run.report->drivers[0].owners[0].call);
    end(&run);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
