/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text and numbers on a page.  What comes from outside (targets, the command line) goes through
 * html_text() and no other way.  Errors of the file are left to its ferror().
 */
#ifndef BENCH_HTML_H
#define BENCH_HTML_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"

/* Room for what the functions below make of a number. */
#define HTML_NUMBER_LEN 32

/* Escaped for an element and for an attribute in either kind of quotes; control characters but
 * line feed and tab are shown as what they are not: U+FFFD. */
void html_text(FILE *f, const char *s);

/* The same for what a format makes; cut at 1023 bytes. */
void html_printf(FILE *f, const char *fmt, ...) printf_like(2, 3);

/* A coordinate: what is not finite becomes 0. */
double html_finite(double v);

/* Three digits that count, with k, M, G: "0.052", "3.1", "940", "1.25M".  Return buf. */
const char *html_count(char buf[HTML_NUMBER_LEN], double v);

/* "940 ns", "3.1 µs", "12 ms", "2 s" */
const char *html_ns(char buf[HTML_NUMBER_LEN], double ns);

/* "512 B", "4 KiB", "1.5 GiB" */
const char *html_bytes(char buf[HTML_NUMBER_LEN], double bytes);

/* "940 kB/s", "3.21 GB/s": powers of 1000, as drives are sold. */
const char *html_bandwidth(char buf[HTML_NUMBER_LEN], double bytes_per_s);

/* Copies s, cut in the middle if it is longer than max characters; max >= 3.  Characters are
 * UTF-8's, and none is cut in two. */
void html_shorten(char *buf, size_t len, const char *s, size_t max);

/* Characters of UTF-8. */
size_t html_length(const char *s);

#endif
