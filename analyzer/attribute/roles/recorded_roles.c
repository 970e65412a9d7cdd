#include "recorded_roles.h"

#include "event.h"
#include "util.h"

#include <string.h>

enum { MAX_WORD_BYTES = 24, MAX_TEXT_BYTES = 1024 };

/* torch.profiler's (torch/profiler/_memory_profiler.py, Category), and common synonyms. Its
 * "autograd_detail" has the other results of backward, besides gradients of parameters; these are
 * temporaries here, as everywhere. */
static const struct {
    const char *word;
    enum mt_role role;
} words[] = {
    {"parameter", MT_ROLE_PARAMETERS},        {"weight", MT_ROLE_PARAMETERS},
    {"gradient", MT_ROLE_GRADIENTS},          {"grad", MT_ROLE_GRADIENTS},
    {"activation", MT_ROLE_ACTIVATIONS},      {"optimizer_state", MT_ROLE_OPTIMIZER_STATE},
    {"optimizer", MT_ROLE_OPTIMIZER_STATE},   {"temporary", MT_ROLE_TEMPORARIES},
    {"temporarie", MT_ROLE_TEMPORARIES},      {"input", MT_ROLE_INPUTS},
    {"autograd_detail", MT_ROLE_TEMPORARIES}, {"workspace", MT_ROLE_WORKSPACE},
    {"kv_cache", MT_ROLE_KV_CACHE},           {"other", MT_ROLE_OTHER},
    {"weight_copie", MT_ROLE_WEIGHT_COPIES},
};

/* "KV cache" as "kv_cache", "Activations" as "activation"; returns false if it is too long to be
 * one. */
static bool spell(const char *text, size_t length, char word[MAX_WORD_BYTES])
{
    if (!length || length >= MAX_WORD_BYTES)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        word[i] = c == ' ' || c == '-' ? '_' : c;
    }
    if (word[length - 1] == 's')
        length--;
    word[length] = '\0';
    return true;
}

static bool role_of_word(const char *text, size_t length, enum mt_role *role)
{
    char word[MAX_WORD_BYTES];

    if (!spell(text, length, word))
        return false;
    for (size_t i = 0; i < MT_ARRAY_LEN(words); i++) {
        if (strcmp(word, words[i].word) == 0) {
            *role = words[i].role;
            return true;
        }
    }
    return false;
}

static size_t skip_spaces(const char *text, size_t at, size_t length)
{
    while (at < length && text[at] == ' ')
        at++;
    return at;
}

/* The value of the first "role" anywhere in a text that is a JSON object. */
static bool role_of_object(const char *text, size_t length, enum mt_role *role)
{
    static const char key[] = "\"role\"";
    size_t at, end;

    for (at = 0; at + strlen(key) < length && memcmp(text + at, key, strlen(key)) != 0; at++)
        ;
    at = skip_spaces(text, at + strlen(key), length);
    if (at >= length || text[at] != ':')
        return false;
    at = skip_spaces(text, at + 1, length);
    if (at >= length || text[at] != '"')
        return false;
    for (end = ++at; end < length && text[end] != '"'; end++)
        ;
    return end < length && role_of_word(text + at, end - at, role);
}

/* Texts of one block are joined by "; ": the last one that is a role counts. */
bool mt_recorded_role(const struct mt_symbols *symbols, uint32_t name, enum mt_role *role)
{
    if (name == MT_NO_ID)
        return false;
    const char *text = mt_symbols_text(symbols, name);
    size_t end = strnlen(text, MAX_TEXT_BYTES + 1);
    for (size_t begin = end; end <= MAX_TEXT_BYTES && begin-- > 0;) {
        if (begin && !(begin > 1 && text[begin - 1] == ' ' && text[begin - 2] == ';'))
            continue;
        if (text[begin] == '{' ? role_of_object(text + begin, end - begin, role)
                               : role_of_word(text + begin, end - begin, role))
            return true;
        end = begin >= 2 ? begin - 2 : 0;
    }
    return false;
}
