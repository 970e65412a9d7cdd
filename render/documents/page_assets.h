/* Styles and scripts of the pages, which the build embeds in the program (cmake/embed.cmake). A
 * report has report.css, and page.js followed by report.js. A job has report.css followed by
 * job.css, and page.js followed by job.js. */
#ifndef MT_RENDER_PAGE_ASSETS_H
#define MT_RENDER_PAGE_ASSETS_H

extern const char mt_page_css[], mt_page_js[];
extern const char mt_job_css[], mt_job_js[];

#endif
