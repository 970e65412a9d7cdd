#include "page_head.h"

#include "escape.h"
#include "chart_frame.h"
#include "page_assets.h"
#include "html_table.h"
#include "site.h"
#include "theme.h"
#include "util.h"

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

void mt_add_page_start(struct mt_buf *out, const struct mt_page_policy *policy)
{
    mt_buf_add_text(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    mt_add_page_policy(out, policy);
    mt_buf_add_text(out,
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
}

void mt_add_page_head(struct mt_buf *out, const struct mt_page_head *head,
                      struct mt_page_policy *policy)
{
    struct mt_buf sheet = {0};

    add_sheet(&sheet, head->css);
    mt_buf_printf(out, "<title>%s: ", head->program);
    mt_add_page_name(out, head->name);
    mt_buf_add_text(out, "</title>\n<style>");
    mt_buf_add_text(out, sheet.data);
    mt_buf_add_text(out, "</style></head>\n<body>\n");
    mt_page_policy_allow_style(policy, sheet.data);
    mt_buf_release(&sheet);
}

void mt_add_page_title(struct mt_buf *out, const struct mt_report *report)
{
    const struct mt_device_report *device = report->device_count == 1 ? report->devices : NULL;
    struct mt_drawing words;

    mt_drawing_init(&words, 1, 1, "words");
    mt_buf_add_text(out, "<header class=\"page-head\"><h1>");
    mt_add_page_name(out, report->name);
    mt_buf_add_text(out, "</h1>\n<p class=\"facts\">");
    mt_add_page_name(out, mt_chart_frame_facts(&words, report, device));
    if (report->what_if) {
        mt_buf_add_text(out, " \xC2\xB7 simulated with ");
        mt_add_page_name(out, report->policy);
    }
    mt_buf_add_text(out, "</p></header>\n");
    mt_drawing_release(&words);
}
