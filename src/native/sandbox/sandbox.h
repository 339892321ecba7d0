/* What the parts of the launcher share: what it was asked for, the line to the gate, and how a failure is told.
 * One program, one file per step; every function is static and included once by sandbox.c. */
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

/* Descriptors that the gate gives: lines of text both ways, and a way out for sockets. */
#define CONTROL 3
#define SOCKETS 4
#define LIST_MAX 4096

struct options {
	/* The caller may make namespaces by itself; else a user namespace comes first. */
	bool privileged;
	/* The caller's process group has the terminal. */
	bool foreground;
	const char *resolv;
	/* Covered: sockets and files by /dev/null, folders by an empty one. */
	const char *files[LIST_MAX];
	const char *folders[LIST_MAX];
	const char *publish[LIST_MAX];
	int file_count, folder_count, publish_count;
	char **command;
};

static void tell(const char *text)
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

/* `fail STEP ERRNO DETAIL` ends the launcher; nothing of the command has run. */
static _Noreturn void fail(const char *step, int error, const char *detail)
{
	char line[PATH_MAX + 128];
	snprintf(line, sizeof(line), "fail %s %d %s\n", step, error, detail);
	tell(line);
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
