/* Identifying text is redacted, common text stays. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "redacted_source.h"
#include "redaction.h"
#include "source.h"

static char *redacted(const struct mt_redaction *redaction, enum mt_text_kind kind,
                      const char *text)
{
    static struct mt_buf out;

    mt_buf_release(&out);
    mt_redact(redaction, kind, text, strlen(text), &out);
    mt_buf_add_text(&out, "");
    return out.data;
}

TEST(common_text_stays)
{
    static const struct {
        enum mt_text_kind kind;
        const char *text, *becomes; /* NULL: stays */
    } cases[] = {
        {MT_TEXT_FILE, "/home/alice/.venv/lib/python3.12/site-packages/torch/nn/modules/linear.py",
         "/redacted/site-packages/torch/nn/modules/linear.py"},
        {MT_TEXT_FILE, "/opt/alice/lib/python3.12/threading.py",
         "/redacted/lib/python3.12/threading.py"},
        {MT_TEXT_FILE, "/home/alice/pytorch/torch/optim/adam.py", "/redacted/torch/optim/adam.py"},
        {MT_TEXT_FILE, "/builds/x/aten/src/ATen/EmptyTensor.cpp",
         "/redacted/aten/src/ATen/EmptyTensor.cpp"},
        {MT_TEXT_FILE, "/usr/lib/x86_64-linux-gnu/libcuda.so.1", NULL},
        {MT_TEXT_FILE, "train.py", NULL},
        {MT_TEXT_FILE, "<frozen runpy>", NULL},
        {MT_TEXT_FILE, "[libcuda.so.1]", NULL},
        {MT_TEXT_FILE, "<__array_function__ internals>", NULL},
        {MT_TEXT_FILE, "/dev/nvidia0", NULL},
        {MT_TEXT_FILE, "site-packages/torch/nn/functional.py", NULL},
        {MT_TEXT_FILE, "torch/nn/modules/linear.py", NULL},
        {MT_TEXT_FILE, "torch/csrc/autograd/engine.cpp", NULL},
        {MT_TEXT_FILE, "aten/src/ATen/native/cuda/Activation.cpp", NULL},
        {MT_TEXT_FILE, "/usr/local/cuda/lib64/libcudart.so.13", NULL},
        {MT_TEXT_FILE, "/usr/local/cuda-12.4/targets/x86_64-linux/lib/libcudart.so.12", NULL},
        {MT_TEXT_FILE, "/usr/include/c++/8/x86_64-redhat-linux/bits/gthr-default.h", NULL},
        {MT_TEXT_FILE, "/lib64/ld-linux-x86-64.so.2", NULL},
        {MT_TEXT_FILE, "/opt/x/lib/python3.11/concurrent/futures/thread.py",
         "/redacted/lib/python3.11/concurrent/futures/thread.py"},
        {MT_TEXT_FILE, "/opt/x/lib/python3.13/pathlib/_local.py",
         "/redacted/lib/python3.13/pathlib/_local.py"},
        {MT_TEXT_FILE, "/usr/local/bin/python3.12", NULL},
        {MT_TEXT_FILE, "", NULL},
        {MT_TEXT_WORDS, "forward/layer 3", NULL},
        {MT_TEXT_WORDS, "layers.0/attn", NULL},
        {MT_TEXT_WORDS, "train/iter/17", NULL},
        {MT_TEXT_WORDS, "see step/forward.", NULL},
        {MT_TEXT_WORDS, "jit(train_step)/jit(main)/transpose(jvp(Transformer))/attn/dot_general",
         NULL},
        {MT_TEXT_WORDS, "StatefulPartitionedCall/sequential_1/max_pooling2d_1/MaxPool2d", NULL},
        {MT_TEXT_WORDS, "at::operator/(at::Tensor const&, double)", NULL},
        {MT_TEXT_WORDS, "c10::TensorImpl::~TensorImpl() [clone .localalias]", NULL},
        {MT_TEXT_WORDS, "torch/nn/modules/linear.py(114): forward", NULL},
        {MT_TEXT_WORDS, "memcpy@GLIBC_2.14", NULL},
        {MT_TEXT_WORDS, "3/10: ~5 MB, 1.5 GiB/s", NULL},
        {MT_TEXT_WORDS, "pp=1/8,dp=3/32", NULL},
        {MT_TEXT_WORDS, "/usr/lib/x86_64-linux-gnu/libcuda.so.1", NULL},
        {MT_TEXT_WORDS, "at::native::empty_cuda(long, a/b)", NULL},
        {MT_TEXT_WORDS, "a / b", NULL},
        {MT_TEXT_WORDS, "expandable_segments:True", NULL},
        {MT_TEXT_THREAD, "pt_autograd_0", NULL},
        {MT_TEXT_THREAD, "MainThread", NULL},
        {MT_TEXT_THREAD, "cuda00001400006", NULL},
        {MT_TEXT_THREAD, "cuda-EvtHandlr", NULL},
        {MT_TEXT_THREAD, "Thread-1 (load)", NULL},
        {MT_TEXT_HOST, "", NULL},
    };
    struct mt_redaction redaction;

    assert_int_equal(mt_redaction_init(&redaction), MT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text, *becomes = cases[i].becomes ? cases[i].becomes : text;

        assert_string_equal(redacted(&redaction, cases[i].kind, text), becomes);
        assert_int_equal(mt_text_identifies(cases[i].kind, text, strlen(text)),
                         cases[i].becomes != NULL);
    }
}

TEST(identifying_text_is_redacted)
{
    static const struct {
        enum mt_text_kind kind;
        const char *text, *gone, *stays;
    } cases[] = {
        {MT_TEXT_FILE, "/home/alice/acme/train.py", "a", "/train.py"},
        {MT_TEXT_FILE, "acme/train.py", "acme", "/train.py"},
        {MT_TEXT_FILE, "C:\\Users\\alice\\train.py", "alice", "/train.py"},
        {MT_TEXT_FILE, "/tmp/torchinductor_alice/ab/cab.py", "alice", "torchinductor_"},
        {MT_TEXT_FILE, "/usr/lib/../../home/alice/x.py", "alice", "/x.py"},
        {MT_TEXT_FILE, "torch/../../alice/x.py", "alice", "/x.py"},
        {MT_TEXT_FILE, "/x/site-packages/../../../home/alice/a.py", "alice", "/a.py"},
        {MT_TEXT_FILE, "/redacted/../home/alice/x.py", "alice", "/x.py"},
        {MT_TEXT_FILE, "<frozen /home/alice/x.py>", "alice", "/x.py>"},
        {MT_TEXT_FILE, "<doctest alice/x.py>", "alice", "/x.py>"},
        {MT_TEXT_FILE, "[/home/alice/lib.so]", "alice", "/lib.so]"},
        {MT_TEXT_FILE, "/dev/shm/alice/x.py", "alice", "/x.py"},
        {MT_TEXT_FILE, "/dev/shm/x.py", "shm", "/x.py"},
        {MT_TEXT_FILE, "/proc/self/root/home/alice/x.py", "alice", "/x.py"},
        {MT_TEXT_WORDS, "load /home/alice/data.bin (cold)", "alice", " (cold)"},
        {MT_TEXT_WORDS, "cupti=/home/alice/libcupti.so.13, 13.0", "alice", "/libcupti.so.13, 13.0"},
        {MT_TEXT_FILE, "/home/u/c10/alice/m.py", "alice", "/m.py"},
        {MT_TEXT_FILE, "/home/u/lib/python3-alice/m.py", "alice", "/m.py"},
        {MT_TEXT_FILE, "/home/u/lib/python3.12/alice/m.py", "alice", "/m.py"},
        {MT_TEXT_FILE, "/usr/local/cuda-alice/m.py", "alice", "/m.py"},
        {MT_TEXT_FILE, "/usr/share/alice/m.py", "alice", "/m.py"},
        {MT_TEXT_FILE, "/lib/alice/m.py", "alice", "/m.py"},
        {MT_TEXT_FILE, "torch/alice/m.py", "alice", "/m.py"},
        {MT_TEXT_FILE, "torch/nn/alice/m.py", "alice", "/m.py"},
        {MT_TEXT_FILE, "/home/u/torch/_alice/m.py", "alice", "/m.py"},
        {MT_TEXT_FILE, "/redacted/alice/m.py", "alice", "/m.py"},
        {MT_TEXT_FILE, "/redacted/0123456789ab/alice/m.py", "alice", "/m.py"},
        {MT_TEXT_FILE, "file%3A%2F%2Fhome%2Falice%2Fm.py", "alice", "/m.py"},
        {MT_TEXT_FILE, "alice@host:m.py", "alice", "/m.py"},
        {MT_TEXT_WORDS, "cd /home/alice", "alice", "cd /redacted/"},
        {MT_TEXT_WORDS, "cd ~alice", "alice", "cd redacted-"},
        {MT_TEXT_WORDS, "`~/alice/x.py`", "alice", "/x.py`"},
        {MT_TEXT_WORDS, "-I/home/alice/x", "alice", "redacted/"},
        {MT_TEXT_WORDS, "n \xe2\x86\x92/home/alice/x.py", "alice", "n redacted/"},
        {MT_TEXT_WORDS, "C:\\Users\\Alice Smith\\acme\\x.py, 3", "Smith", "/x.py, 3"},
        {MT_TEXT_WORDS, "/mnt/acme/alice's run, 3/lr=0.1,b/x.py ok", "run", "/x.py ok"},
        {MT_TEXT_WORDS, "https://alice:pw@host/x?q=alice", "pw", "redacted/"},
        {MT_TEXT_WORDS, "s3://alice/model.pt", "s3", "/model.pt"},
        {MT_TEXT_WORDS, "mail alice@example.com", "example", "mail redacted-"},
        {MT_TEXT_WORDS, "data/alice/x", "alice", "data/redacted-"},
        {MT_TEXT_WORDS, "jit(f)/alice/add", "alice", "jit(f)/redacted-"},
        {MT_TEXT_WORDS, "alice/model.py", "alice", "/model.py"},
        {MT_TEXT_WORDS, "torch/alice/x.py", "alice", "/x.py"},
        {MT_TEXT_WORDS, "/usr/lib/alice", "alice", "/redacted/"},
        {MT_TEXT_THREAD, "alice-worker", "alice", "redacted-thread-"},
        {MT_TEXT_THREAD, "cuda-alice", "alice", "redacted-thread-"},
        {MT_TEXT_THREAD, "Thread-1 (load) alice", "alice", "redacted-thread-"},
        {MT_TEXT_HOST, "alices-laptop", "alice", "redacted-host-"},
        {MT_TEXT_HOST, "host-0123456789ab", "0123456789ab", "redacted-host-"},
        {MT_TEXT_THREAD, "thread-0123456789ab", "0123456789ab", "redacted-thread-"},
        {MT_TEXT_COMMAND, "python train.py --token abc", "token", "redacted-command-"},
        {MT_TEXT_JOB, "slurm:1234_5", "1234", "redacted-job-"},
        {MT_TEXT_BOOT, "18adb6f6-9d11-4f28-bbdb-7bd9c2a7a921", "18adb6f6", "redacted-boot-"},
        {MT_TEXT_UUID, "GPU-d68a1c34-af46-d2ae-6938-2316ee624a8c", "d68a1c34", "redacted-uuid-"},
    };
    struct mt_redaction redaction, other;

    assert_int_equal(mt_redaction_init(&redaction), MT_OK);
    assert_int_equal(mt_redaction_init(&other), MT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *once = strdup(redacted(&redaction, cases[i].kind, cases[i].text));

        assert_non_null(once);
        assert_non_null(strstr(once, cases[i].stays));
        assert_true(i == 0 || !strstr(once, cases[i].gone));
        assert_null(strstr(once, "alice"));
        assert_true(mt_text_identifies(cases[i].kind, cases[i].text, strlen(cases[i].text)));
        /* equal text stays equal under one salt, and differs under another */
        assert_string_equal(redacted(&redaction, cases[i].kind, cases[i].text), once);
        assert_string_not_equal(redacted(&other, cases[i].kind, cases[i].text), once);
        /* redacting twice equals redacting once */
        assert_string_equal(redacted(&other, cases[i].kind, once), once);
        free(once);
    }
}

/* A source without events, whose reading defines a stack and a heap. */
static enum mt_status defining_next(struct mt_source *source, struct mt_event_batch *batch,
                                    struct mt_error *error)
{
    struct mt_symbols *symbols = &source->symbols;
    uint32_t name, frame, id;

    (void)batch;
    (void)error;
    assert_int_equal(mt_symbols_string(symbols, "/home/alice/x.py", 16, &name), MT_OK);
    assert_int_equal(mt_symbols_frame(symbols, MT_NO_ID, name, 1, &frame), MT_OK);
    assert_int_equal(mt_symbols_stack(symbols, MT_NO_ID, frame, &id), MT_OK);
    assert_int_equal(mt_symbols_heap(symbols, name, &id), MT_OK);
    return MT_END;
}

static void defining_close(struct mt_source *source)
{
    mt_symbols_release(&source->symbols);
}

/* A damaged or foreign trace may end with definitions that no event follows. */
TEST(last_definitions_are_copied)
{
    static const struct mt_source_ops ops = {defining_next, NULL, NULL, defining_close, NULL};
    static const struct mt_redaction redaction;
    struct mt_source inner = {.ops = &ops, .format = "test"}, *source;
    struct mt_event_batch batch;
    struct mt_error error;

    assert_int_equal(mt_symbols_init(&inner.symbols), MT_OK);
    source = mt_redacted_source(&inner, &redaction);
    assert_non_null(source);
    assert_int_equal(mt_source_next(source, &batch, &error), MT_END);
    assert_int_equal(source->symbols.stack_count, 1);
    assert_int_equal(source->symbols.heap_count, 2);
    assert_null(strstr(mt_symbols_text(&source->symbols, source->symbols.frames[0].file), "alice"));
    mt_source_close(source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
