/* This file has what all parts of the launcher use: the options, the line to the gate, and the report of a failure. The launcher
 * is one program with one file per step. Every function is static, and sandbox.c includes each file once. */
#ifndef NAMEGATE_SANDBOX_H
#define NAMEGATE_SANDBOX_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors that the gate provides: one for lines of text in both directions, one to send sockets to the gate. */
#define CONTROL 3
#define SOCKETS 4
#define LIST_MAX 4096

struct options {
	/* True if the caller can make namespaces by itself. Otherwise the launcher first makes a user namespace. */
	bool privileged;
	/* True if the caller's process group has the terminal. */
	bool foreground;
	const char *resolv;
	/* True if the command cannot write files, and if it has empty folders for temporary files. */
	bool read_only, private_tmp;
	/* Paths to cover: sockets and files with /dev/null, folders with an empty folder. A path that is missing needs no cover. */
	const char *files[LIST_MAX];
	const char *folders[LIST_MAX];
	/* Paths that must be covered, and files that the command must not write. They exist, or the command does not run. */
	const char *hidden[LIST_MAX];
	const char *locked[LIST_MAX];
	const char *publish[LIST_MAX];
	int file_count, folder_count, hidden_count, locked_count, publish_count;
	char **command;
};

static void report(const char *text)
{
	size_t left = strlen(text);
	while (left > 0) {
		ssize_t sent = send(CONTROL, text, left, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return;
		text += sent;
		left -= (size_t)sent;
	}
}

/* Reports `fail STEP ERRNO DETAIL` and ends the launcher. No part of the command has run at this point. */
static _Noreturn void fail(const char *step, int error, const char *detail)
{
	char line[PATH_MAX + 128];
	snprintf(line, sizeof(line), "fail %s %d %s\n", step, error, detail);
	report(line);
	_exit(1);
}

static void must(bool fine, const char *step, const char *detail)
{
	if (!fine)
		fail(step, errno, detail);
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t written = write(fd, text, strlen(text));
	int error = errno;
	close(fd);
	errno = error;
	return written == (ssize_t)strlen(text);
}

#endif
