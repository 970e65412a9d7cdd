#include "public_names.h"

#include <string.h>

#include "ascii.h"
#include "util.h"

enum { MAX_DIGITS = 6, MAX_WORD = 24 };

/* Sorted, each with a blank behind it. Parts of the names of folders in PyTorch, Python, CUDA and
 * Linux, of operations in PyTorch, XLA and TensorFlow, and of modules and phases of models. Nobody
 * can be identified by them. */
static const char words[] =
    "aarch abs acc accelerator acos activation actor adagrad adam adamw adapter add addmm alexnet "
    "alg algorithms all allocate amd amp analysis analyze and any ao aot aoti api arange archive "
    "arg argmax argmin argsort arm array artifacts assign async asyncio atan aten atten attention "
    "attn auto autocast autograd autoheuristic average averaging avg awaits axis backcompat "
    "backend backends backprop backward base batch batchnorm begin benchmark bert bfloat bgemm "
    "bias bin binary bitcast bits bitwise block blocks bn body bool boxing branch broadcast "
    "broadcasting bucket buffer build bwd byte c cache caching caffe call callbacks cast cat "
    "categorical ceil cf channel channels checkpoint checkpointing cholesky chunk chunker ckpt "
    "clamp class classifier clip clone closed cluster cmake coalesced codegen col collections "
    "collective collectives comm command common compare compat compatibility compile compiler "
    "complex components composable compression computation compute concat concatenate concurrent "
    "cond config const constant container context contiguous contrib control conv conversion "
    "convert convolution copy core coreml cos count counter cpp cpu critic cross crossentropy csrc "
    "ctypes cub cublas cuda cudagraph cudart cudnn cufft cumprod cumsum cupti curand current "
    "curses cusolver cusparse cusparselt custom cutedsl cutlass d data dataframe dataloader "
    "datapipes datasets dbm ddp debug decode decoder decomp deconv deepcopy definitions delta "
    "denoise dense deserialize detach detail device diag dialect diffusion dim dims dispatch dist "
    "distributed distributions distutils div divide dnnl dom done dot down dropout ds dtype dummy "
    "dump dw dynamic dynamo dynload eager eff einsum element elementwise elu ema email embed "
    "embedding embeddings empty encode encoder encodings end engine ensurepip entropy epilogue "
    "epoch equal erf errors etree eval events evt executor exp expand expanded experts export "
    "exporter extensions extras fc feature feed feeder fetch ffn fft fill filter final findcuda "
    "finish first fix fixes flash flat flatbuffer flatten flax flex flight float floor fmt fold "
    "folding forward fp free frontend fsdp full fully func functional functionalization functions "
    "functorch fused fuser fusion futures fuzzers fwd fx gate gather gb gcc gelu gemm general "
    "generated generator get gib gloo gnu gpt gpu grad gradient gradients gradual graph greater "
    "group grouped groupnorm gru handler handlr head headeronly heads heartbt heuristics hf hidden "
    "higher hip hipify hlo hooks host html http id identity im image impl importlib imports in "
    "include index indices inductor infer inference infra init initializer inner input inputs "
    "instruction int internal interpreter intrinsic invoke iota ir it item iter iteration iterator "
    "iterators jax jit jnp json jvp kb keras kernel kernels key keys kib kv label labels last "
    "latent launch launcher lax layer layernorm layers lazy leaky learning legacy len less lib "
    "libdevice libmemtrace library libregrtest libshm lightning limit linalg linear linen linspace "
    "linux list llama ln load local log logging logical logistic logit logits logsumexp lookup "
    "loop loss losses lr lstm macros main map mask masked maskedtensor matmul matrix matshapes max "
    "maximum mb mean mem memory memset memtrace merge messages metadata metal metric metrics mha "
    "mib micro microbatch mid migrate mime min mini minimum miopen mkl mkldnn mlp mobile mock mod "
    "model module modules moe momentum monitor mps ms mse mtia mul multi multihead "
    "multipledispatch multiply multiprocessing nan native nativert nccl negative nested new nn "
    "nnapi nnc nnpack nnx no noise non none norm normal normalization normalize not ns null num "
    "numa numpy nv nvidia nvjitlink nvml nvrtc nvshmem nvtx nvvm offloading oneapi onednn ones "
    "onnx op openmp operations operator operators opinfo ops opt optax optests optim optimize "
    "optimizer optimizers options or orchestration order out outer output outputs overlap pack "
    "package packages packaging pad padding pallas parallel parameter params parsers part "
    "partitioned pass passes patch path pathlib pattern patterns permute pgen phase pin pipelining "
    "pjit plan plane pmap pointwise policy polyfills pool pooled pooling position positional posix "
    "post pow pre predict predictions prefetch prefill prime prims prng probs profiler proj "
    "projection prologue protobuf pruner pruning psum pt pthread public put pv pybind pyc pycute "
    "pydoc pydot pyrepl python qat qk qkv quantizable quantization quantized query queue rand "
    "random range rank re read reciprocal recompute recorder recv redhat reduce ref reference refs "
    "reg region registration relu remainder remat rendezvous repeat replica report repro reset "
    "reshape residual resize resnet resources result reward ring rms rmsprop rng rnn rocm roll "
    "rollout root rope rotary round rpc rsqrt run runner runtime sample sampler samplers sampling "
    "save sax sbsa scale scaled scan scatter scheduler schedulers scipy score scores scripts seed "
    "segment select self send seq sequence sequential serde serialization serialize serialized set "
    "sgd shape shapen shapes shard sharded sharding shift shuffle sigmoid sign signal silu sin "
    "site size slice softmax softplus sort sparse sparsecategorical sparsifier spec special split "
    "spmd sqlite sqrt square squeeze src stable stack stage standalone start state stateful "
    "stateless states static std stem step steps stop stride strided string strobelight stubs sub "
    "subclasses subprocess subtract sum swish switch symbol symm symmetric sympy sync synchronize "
    "table tail take tan tanh tape target targets task tcpstore template templates tensor "
    "tensorboard tensorexpr tensorpipe tensors testing text thc thread threadpool thrust thunk "
    "tile time timer to tok token tokens tomllib tools top topk torch torchlib torchscript tpu "
    "trace tracer train trainer training transform transformer transformers transforms transpose "
    "triangular tril triton true truncated ts ttir tunable tuple type types unet unification "
    "uniform unit unittest universal unsqueeze unwind up update upgraders upsample upstream urllib "
    "us usr util utils v vae val valgrind valid validation value values var variable variables "
    "variance vec vector view vision vit viz vjp vmap wait warmup watchdg weight weights wgrad "
    "where while with without wk wo work worker wq wrapped wrapper write wsgiref wsl wv x xeon xla "
    "xml xmlrpc xnnpack xor xpu zero zeros zipfile zone zoneinfo ";

static bool is_word(const char *text, size_t length)
{
    size_t low = 0, high = sizeof words - 1;
    char key[MAX_WORD + 1];

    if (length > MAX_WORD)
        return false;
    for (size_t i = 0; i < length; i++)
        key[i] = (char)(mt_is_upper(text[i]) ? text[i] - 'A' + 'a' : text[i]);
    key[length] = ' ';
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        while (middle > low && words[middle - 1] != ' ')
            middle--;
        int order = strncmp(key, words + middle, length + 1);
        if (!order)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + (size_t)(strchr(words + middle, ' ') - (words + middle)) + 1;
    }
    return false;
}

/* Length of the first word of "BiasAdd" or "NCCLGroup". */
static size_t camel_length(const char *text, size_t length)
{
    size_t end = 1;

    while (end < length && !(mt_is_upper(text[end]) && !mt_is_upper(text[end - 1])) &&
           !(mt_is_upper(text[end]) && end + 1 < length && !mt_is_upper(text[end + 1])))
        end++;
    return end;
}

static bool are_letters_known(const char *text, size_t length)
{
    size_t part;

    if (is_word(text, length))
        return true;
    for (size_t at = 0; at < length; at += part) {
        part = camel_length(text + at, length - at);
        if (!is_word(text + at, part))
            return false;
    }
    return true;
}

bool mt_public_name(const char *text, size_t length)
{
    bool has_content = false;
    size_t end;

    if (length == 1 && mt_is_letter(*text))
        return true;
    for (size_t at = 0; at < length; at = end) {
        for (end = at; end < length && mt_is_letter(text[end]);)
            end++;
        if (end > at && !are_letters_known(text + at, end - at))
            return false;
        for (at = end; end < length && mt_is_digit(text[end]);)
            end++;
        if (end - at > MAX_DIGITS)
            return false;
        has_content |= end > 0 && (mt_is_letter(text[end - 1]) || mt_is_digit(text[end - 1]));
        for (; end < length && !mt_is_letter(text[end]) && !mt_is_digit(text[end]); end++)
            if (!text[end] || !strchr("_.+-:#", text[end]))
                return false;
    }
    return has_content;
}

/* A NUL is a character of no set. */
static bool is_made_of(const char *text, size_t length, const char *marks)
{
    for (size_t i = 0; i < length; i++)
        if (!mt_is_letter(text[i]) && !mt_is_digit(text[i]) &&
            (!text[i] || !strchr(marks, text[i])))
            return false;
    return true;
}

static bool is_one_of(const char *text, size_t length, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && !memcmp(names[i], text, length))
            return true;
    return false;
}

static bool is_transformation(const char *text, size_t length)
{
    static const char *const names[] = {"jit",   "pjit",  "pmap",       "vmap",      "jvp",
                                        "vjp",   "remat", "checkpoint", "transpose", "custom_jvp",
                                        "while", "cond",  "shard_map",  "custom_vjp"};

    return is_one_of(text, length, names, MT_ARRAY_LEN(names));
}

bool mt_public_element(const char *text, size_t length)
{
    const char *open;
    bool is_function = false;

    while (length && text[length - 1] == ')' && (open = memchr(text, '(', length)) != NULL) {
        if (!is_transformation(text, (size_t)(open - text)))
            return false;
        length -= (size_t)(open - text) + 2;
        text = open + 1;
        is_function = true;
    }
    return is_function ? is_made_of(text, length, "_.<>-") : mt_public_name(text, length);
}

/* "libcudart.so.13" */
static bool is_library(const char *text, size_t length)
{
    while (length && (mt_is_digit(text[length - 1]) || text[length - 1] == '.'))
        length--;
    return length > 3 && !memcmp(text + length - 3, ".so", 3);
}

bool mt_public_file_name(const char *text, size_t length)
{
    static const char *const extensions[] = {
        "py",  "pyc",  "pyi",  "pyx", "ipynb", "c",   "cc",  "cpp", "cxx",  "cu",  "cuh",
        "h",   "hh",   "hpp",  "inc", "inl",   "S",   "s",   "ptx", "bin",  "pt",  "pth",
        "dll", "json", "yaml", "yml", "toml",  "txt", "log", "csv", "onnx", "pkl", "safetensors",
    };
    size_t end = length, dot;

    if (!is_made_of(text, length, "_.+-:"))
        return false;
    while (end && mt_is_digit(text[end - 1]))
        end--;
    if (end && end < length && text[end - 1] == ':')
        length = end - 1;
    for (dot = length; dot && text[dot - 1] != '.';)
        dot--;
    return dot > 1 && !memchr(text, ':', length) &&
           (is_library(text, length) ||
            is_one_of(text + dot, length - dot, extensions, MT_ARRAY_LEN(extensions)));
}

static bool has_parent(const char *text, size_t length)
{
    for (size_t at = 0; at + 1 < length; at++)
        if (text[at] == '.' && text[at + 1] == '.')
            return true;
    return false;
}

/* Start of the name that ends before `end`. */
static size_t name_start(const char *path, size_t end)
{
    while (end && path[end - 1] != '/')
        end--;
    return end;
}

/* "python3", "python3.12" */
static bool is_python(const char *text, size_t length)
{
    size_t at = 6;

    while (at < length && (mt_is_digit(text[at]) || text[at] == '.'))
        at++;
    return length > 6 && length < 12 && at == length && !memcmp(text, "python", 6);
}

/* Whether the sources of PyTorch or Python begin at the folder `path`, `length` bytes with names
 * that are known. */
static bool is_root(const char *path, size_t length)
{
    static const char *const roots[] = {"torch", "aten", "c10", "caffe2"};
    const char *slash = memchr(path, '/', length);
    size_t name = (size_t)(slash - path);

    if (is_one_of(path, name, roots, MT_ARRAY_LEN(roots)))
        return true;
    const char *next = slash + 1;
    slash = memchr(next, '/', length - name - 1);
    return slash && is_python(next, (size_t)(slash - next)) &&
           (!memcmp(path, "lib/", 4) || !memcmp(path, "lib64/", 6));
}

static bool is_system(const char *path, size_t length)
{
    static const char *const folders[] = {"usr", "lib", "lib64"};
    const char *slash = length > 1 ? memchr(path + 1, '/', length - 1) : NULL;

    return *path == '/' && slash &&
           is_one_of(path + 1, (size_t)(slash - path) - 1, folders, MT_ARRAY_LEN(folders));
}

static bool is_packages(const char *text, size_t length)
{
    static const char *const names[] = {"site-packages", "dist-packages"};

    return is_one_of(text, length, names, MT_ARRAY_LEN(names));
}

/* Start of the last site-packages; `length` if there is none. */
static size_t packages_start(const char *path, size_t length)
{
    for (size_t end = length - 1, start; end; end = start - 1) {
        start = name_start(path, end);
        if (is_packages(path + start, end - start))
            return is_made_of(path + start, length - start, "_.+-/") &&
                           !has_parent(path + start, length - start)
                       ? start
                       : length;
        if (!start)
            break;
    }
    return length;
}

/* Start of the first root that only known names follow; 0 for a folder of the system; `length` if
 * there is none. */
static size_t known_start(const char *path, size_t length)
{
    size_t found = length;

    for (size_t end = length - 1, start;; end = start - 1) {
        start = name_start(path, end);
        if (!mt_public_name(path + start, end - start))
            return found;
        if (is_root(path + start, length - start))
            found = start;
        if (start <= 1)
            return is_system(path, length) ? 0 : found;
    }
}

size_t mt_public_folder(const char *path, size_t length)
{
    if (length < 2 || path[length - 1] != '/')
        return length;
    size_t found = packages_start(path, length);
    if (found == length)
        found = known_start(path, length);
    return found && found < length ? found - 1 : found;
}
