/* The parts that the pages of a run and of a job share: the head, words, and the policy of the
 * page. */
#include <stdbool.h>
#include <string.h>

#include "ascii.h"
#include "buf.h"
#include "chart_frame.h"
#include "document_tables.h"
#include "escape.h"
#include "page_head.h"
#include "report.h"
#include "sha256.h"
#include "site.h"
#include "theme.h"
#include "units.h"
#include "util.h"

/* Returns true for a character of a name or a number. */
static bool goes_on(char c)
{
    return mt_is_alnum(c) || c == '_';
}

/* Returns the length of a number with its unit at `text`; 0 = there is none. */
static size_t quantity_length(const char *text)
{
    size_t number = strspn(text, "0123456789.,");

    if (!mt_is_digit(*text) || text[number] != ' ')
        return 0;
    size_t unit = mt_unit_length(text + number + 1);
    return unit ? number + 1 + unit : 0;
}

static void add_piece(struct mt_buf *out, struct mt_buf *piece, const char *text, size_t length)
{
    mt_buf_reset(piece);
    mt_buf_add(piece, text, length);
    mt_escape_add_xml(out, piece->data ? piece->data : "");
}

void mt_page_add_words(struct mt_buf *out, const char *words)
{
    struct mt_buf piece = {0};

    if (strlen(words) > MT_PAGE_NAME_BYTES) {
        mt_page_add_name(out, words);
        return;
    }
    while (*words) {
        size_t length = quantity_length(words);
        if (length) {
            mt_buf_add_text(out, "<span class=\"quantity\">");
            add_piece(out, &piece, words, length);
            mt_buf_add_text(out, "</span>");
            words += length;
        }
        for (length = *words != '\0';
             words[length] && (goes_on(words[length - 1]) || !mt_is_digit(words[length]));)
            length++;
        add_piece(out, &piece, words, length);
        words += length;
    }
    mt_buf_release(&piece);
}

enum { HASH_DIGITS = MT_SHA256_TEXT - 1 };

static unsigned digit(const char *hash, size_t i)
{
    if (i >= HASH_DIGITS)
        return 0;
    return (unsigned)(hash[i] <= '9' ? hash[i] - '0' : hash[i] - 'a' + 10);
}

/* Appends a hexadecimal hash in base 64 (RFC 4648), as the policy requires. Three hexadecimal
 * digits are two characters. */
static void add_base64(struct mt_buf *out, const char *hash)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < HASH_DIGITS; i += 3) {
        unsigned bits = digit(hash, i) << 8 | digit(hash, i + 1) << 4 | digit(hash, i + 2);
        mt_buf_add_char(out, letters[bits >> 6]);
        mt_buf_add_char(out, i + 2 < HASH_DIGITS ? letters[bits & 63] : '=');
    }
}

static void allow(struct mt_buf *sources, const char *content)
{
    char text[MT_SHA256_TEXT], room[MT_PAGE_HASH_BYTES + 1];
    struct mt_buf source = {.data = room, .capacity = sizeof room, .is_fixed = true};
    struct mt_sha256 sha;

    mt_sha256_init(&sha);
    mt_sha256_add(&sha, content, strlen(content));
    mt_sha256_finish(&sha, text);
    mt_buf_add_text(&source, " 'sha256-");
    add_base64(&source, text);
    mt_buf_add_char(&source, '\'');
    if (!sources->data || !strstr(sources->data, source.data))
        mt_buf_add_text(sources, source.data);
}

void mt_page_policy_allow_script(struct mt_page_policy *policy, const char *content)
{
    allow(&policy->scripts, content);
}

void mt_page_policy_allow_style(struct mt_page_policy *policy, const char *content)
{
    allow(&policy->styles, content);
}

static void add_sources(struct mt_buf *out, const char *directive, const struct mt_buf *sources)
{
    mt_buf_add_text(out, directive);
    mt_buf_add_text(out, sources->data ? sources->data : " 'none'");
}

static void add_page_policy(struct mt_buf *out, const struct mt_page_policy *policy)
{
    mt_buf_add_text(out, "<meta http-equiv=\"Content-Security-Policy\" content=\""
                         "default-src 'none'; base-uri 'none'; form-action 'none'");
    add_sources(out, "; style-src", &policy->styles);
    add_sources(out, "; script-src", &policy->scripts);
    mt_buf_add_text(out, "\">\n");
}

void mt_page_policy_release(struct mt_page_policy *policy)
{
    mt_buf_release(&policy->scripts);
    mt_buf_release(&policy->styles);
}

static const struct {
    const char *name;
    enum mt_color color;
} variables[] = {{"background", MT_COLOR_BACKGROUND},
                 {"panel", MT_COLOR_PANEL},
                 {"grid", MT_COLOR_GRID},
                 {"axis", MT_COLOR_AXIS},
                 {"text", MT_COLOR_TEXT},
                 {"muted", MT_COLOR_MUTED},
                 {"reserved", MT_COLOR_RESERVED},
                 {"good", MT_COLOR_GOOD},
                 {"warn", MT_COLOR_WARN},
                 {"bad", MT_COLOR_BAD}};

static void add_cell_color(struct mt_buf *out, const char *kind, unsigned number,
                           enum mt_color color, enum mt_theme theme)
{
    mt_buf_printf(out, ".%s%u{background:#%06x;color:#%06x}", kind, number,
                  (unsigned)mt_theme_rgb(theme, color),
                  (unsigned)mt_theme_rgb(theme, mt_theme_text_on(color)));
}

static void add_colors(struct mt_buf *out, enum mt_theme theme)
{
    mt_buf_printf(out, ":root{color-scheme:%s;--link:#%s;",
                  theme == MT_THEME_DARK ? "dark" : "light",
                  theme == MT_THEME_DARK ? "58a6ff" : "0969da");
    for (size_t i = 0; i < MT_ARRAY_LEN(variables); i++)
        mt_buf_printf(out, "--%s:#%06x;", variables[i].name,
                      (unsigned)mt_theme_rgb(theme, variables[i].color));
    mt_buf_add_char(out, '}');
    add_cell_color(out, "root", 0, MT_COLOR_ROOT, theme);
    for (unsigned i = 0; i < MT_ROLE_COUNT; i++)
        add_cell_color(out, "role", i, mt_role_color((enum mt_role)i), theme);
    for (unsigned i = 0; MT_COLOR_PHASE_0 + i <= MT_COLOR_PHASE_LAST; i++)
        add_cell_color(out, "phase", i, (enum mt_color)(MT_COLOR_PHASE_0 + i), theme);
    for (unsigned i = 0; i < MT_ORIGIN_COUNT; i++)
        add_cell_color(out, "origin", i, (enum mt_color)(MT_COLOR_ORIGIN_0 + i), theme);
}

static void add_sheet(struct mt_buf *out, const char *css)
{
    add_colors(out, MT_THEME_LIGHT);
    mt_buf_add_text(out, "@media(prefers-color-scheme:dark){");
    add_colors(out, MT_THEME_DARK);
    mt_buf_add_text(out, "}\n");
    mt_buf_add_text(out, css);
}

void mt_page_add_start(struct mt_buf *out, const struct mt_page_policy *policy)
{
    mt_buf_add_text(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    add_page_policy(out, policy);
    mt_buf_add_text(out,
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
}

void mt_page_add_head(struct mt_buf *out, const struct mt_page_head *head,
                      struct mt_page_policy *policy)
{
    struct mt_buf sheet = {0};

    add_sheet(&sheet, head->css);
    mt_buf_printf(out, "<title>%s: ", head->program);
    mt_page_add_name(out, head->name);
    mt_buf_add_text(out, "</title>\n<style>");
    mt_buf_add_text(out, sheet.data);
    mt_buf_add_text(out, "</style></head>\n<body>\n");
    mt_page_policy_allow_style(policy, sheet.data);
    mt_buf_release(&sheet);
}

void mt_page_add_title(struct mt_buf *out, const struct mt_report *report)
{
    const struct mt_device_report *device = report->device_count == 1 ? report->devices : NULL;
    struct mt_drawing words;

    mt_drawing_init(&words, 1, 1, "words");
    mt_buf_add_text(out, "<header class=\"page-head\"><h1>");
    mt_page_add_name(out, report->name);
    mt_buf_add_text(out, "</h1>\n<p class=\"facts\">");
    mt_page_add_name(out, mt_chart_frame_facts(&words, report, device));
    if (report->what_if) {
        mt_buf_add_text(out, " \xC2\xB7 simulated with ");
        mt_page_add_name(out, report->policy);
    }
    mt_buf_add_text(out, "</p></header>\n");
    mt_drawing_release(&words);
}

void mt_page_add_link(struct mt_buf *nav, const char *id, const char *words)
{
    mt_buf_printf(nav, "<a href=\"#%s\">%s</a>\n", id, words);
}

bool mt_page_take_room(size_t *left, size_t bytes)
{
    if (bytes > *left)
        return false;
    *left -= bytes;
    return true;
}
