/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/html.h"
#include "bench/report_parts.h"

/* The machine, and when. */
static void write_where(FILE *f, const char *machine)
{
	time_t now = time(NULL);
	char date[64];
	struct tm tm;

	fputs("<p class=\"machine\">", f);
	html_text(f, machine ? machine : "unknown machine");
	if (gmtime_r(&now, &tm) && strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &tm))
		fprintf(f, "; %s", date);
	fputs("</p>\n", f);
}

static void write_targets(FILE *f, const struct report_points *p)
{
	if (p->targets < 2)
		return;
	fputs("<section>\n<h2>Targets</h2>\n<ul class=\"legend\">\n", f);
	for (unsigned t = 0; t < p->targets; t++) {
		fprintf(f, "<li><b class=\"c%u\">%c</b><span>", t % 8, report_target_letter(t));
		html_text(f, p->target_points[t]->target);
		fputs("</span></li>\n", f);
	}
	fputs("</ul>\n</section>\n", f);
}

static int write_page(FILE *f, const struct bench_report *r)
{
	struct report_points points;
	int err = report_points_init(&points, r->points, r->count);

	if (err)
		return err;
	report_write_head(f);
	fputs("<h1>ringside bench</h1>\n", f);
	write_where(f, r->machine);
	fputs("<section><pre>", f);
	html_text(f, r->command_line ? r->command_line : "");
	fputs("</pre></section>\n", f);
	write_targets(f, &points);
	if (!r->count)
		fputs("<p>Nothing was measured.</p>\n", f);
	err = report_write_plots(f, &points);
	if (!err && r->count)
		report_write_figures(f, &points);
	if (!err)
		report_write_floor(f, &points, r->floor);
	report_write_script(f);
	fputs("</body>\n</html>\n", f);
	report_points_fini(&points);
	return err;
}

/* ---- the file ---- */

static int fail(char *err, size_t err_len, const char *path, int error)
{
	snprintf(err, err_len, "report: cannot write '%s': %s", path, strerror(-error));
	return error;
}

/* Takes fd. */
static int write_to(int fd, const struct bench_report *r)
{
	FILE *f = fdopen(fd, "w");
	int err;

	if (!f) {
		err = -errno;
		close(fd);
		return err;
	}
	errno = 0;
	err = write_page(f, r);
	if (!err && (fflush(f) || ferror(f)))
		err = errno ? -errno : -EIO;
	if (fclose(f) && !err)
		err = -errno;
	return err;
}

static int write_directly(const char *path, const struct bench_report *r)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : write_to(fd, r);
}

/* The mode that open() would have given the file. */
static mode_t usual_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

static int write_beside(const char *path, mode_t mode, const struct bench_report *r)
{
	char name[PATH_MAX];
	int fd, err;

	if (snprintf(name, sizeof(name), "%s.XXXXXX", path) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fchmod(fd, mode)) {
		err = -errno;
		close(fd);
	} else {
		err = write_to(fd, r);
	}
	if (!err && rename(name, path))
		err = -errno;
	if (err)
		unlink(name);
	return err;
}

int bench_report_write(const char *path, const struct bench_report *r, char *err, size_t err_len)
{
	char real[PATH_MAX];
	struct stat st;
	int ret;

	if (stat(path, &st))
		ret = write_beside(path, usual_mode(), r);
	else if (S_ISDIR(st.st_mode))
		ret = -EISDIR;
	else if (!S_ISREG(st.st_mode))
		ret = write_directly(path, r);
	else if (!realpath(path, real)) /* a link stays a link */
		ret = -errno;
	else
		ret = write_beside(real, st.st_mode & 07777, r);
	return ret ? fail(err, err_len, path, ret) : 0;
}
