/* Styles and scripts of the pages, which the build makes part of the program (cmake/embed.cmake):
 * report.css, and page.js with report.js behind it; for the page of a job, job.css behind
 * report.css, and page.js with job.js behind it. */
#ifndef MT_RENDER_PAGE_ASSETS_H
#define MT_RENDER_PAGE_ASSETS_H

extern const char mt_page_css[], mt_page_js[];
extern const char mt_job_css[], mt_job_js[];

#endif
