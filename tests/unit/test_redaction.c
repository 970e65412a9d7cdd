/* Identifying text is redacted, common text stays. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "redaction.h"

static char *redacted(const struct mt_redaction *redaction, enum mt_text_kind kind,
                      const char *text)
{
    static struct mt_buf out;

    mt_buf_release(&out);
    mt_redact(redaction, kind, text, strlen(text), &out);
    mt_buf_add_text(&out, "");
    return out.data;
}

static void common_text_stays(void **state)
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
        {MT_TEXT_FILE, "", NULL},
        {MT_TEXT_WORDS, "forward/layer 3", NULL},
        {MT_TEXT_WORDS, "at::native::empty_cuda(long, a/b)", NULL},
        {MT_TEXT_WORDS, "a / b", NULL},
        {MT_TEXT_WORDS, "expandable_segments:True", NULL},
        {MT_TEXT_THREAD, "pt_autograd_0", NULL},
        {MT_TEXT_THREAD, "MainThread", NULL},
        {MT_TEXT_HOST, "", NULL},
    };
    struct mt_redaction redaction;

    (void)state;
    assert_int_equal(mt_redaction_init(&redaction), MT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text, *becomes = cases[i].becomes ? cases[i].becomes : text;

        assert_string_equal(redacted(&redaction, cases[i].kind, text), becomes);
        assert_int_equal(mt_text_identifies(cases[i].kind, text, strlen(text)),
                         cases[i].becomes != NULL);
    }
}

static void identifying_text_is_redacted(void **state)
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
        {MT_TEXT_THREAD, "alice-worker", "alice", "redacted-thread-"},
        {MT_TEXT_HOST, "alices-laptop", "alice", "redacted-host-"},
        {MT_TEXT_HOST, "host-0123456789ab", "0123456789ab", "redacted-host-"},
        {MT_TEXT_THREAD, "thread-0123456789ab", "0123456789ab", "redacted-thread-"},
        {MT_TEXT_COMMAND, "python train.py --token abc", "token", "redacted-command-"},
        {MT_TEXT_JOB, "slurm:1234_5", "1234", "redacted-job-"},
        {MT_TEXT_BOOT, "18adb6f6-9d11-4f28-bbdb-7bd9c2a7a921", "18adb6f6", "redacted-boot-"},
        {MT_TEXT_UUID, "GPU-d68a1c34-af46-d2ae-6938-2316ee624a8c", "d68a1c34", "redacted-uuid-"},
    };
    struct mt_redaction redaction, other;

    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(common_text_stays),
        cmocka_unit_test(identifying_text_is_redacted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
