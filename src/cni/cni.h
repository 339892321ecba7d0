/* This file has what all parts of namegate-cni use: the limits, the deadline, the texts that grow up to a bound, and the error
 * answer of the CNI specification. The plugin is one program with one file per step. Every function is static, and namegate-cni.c
 * includes each file once. */
#ifndef NAMEGATE_CNI_H
#define NAMEGATE_CNI_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INPUT_MAX (1 << 20)
#define ANSWER_MAX (64 << 10)
#define REQUEST_MAX 8192
#define DETAILS_MAX 2048
#define ADDRESSES_MAX 32
#define SECONDS_DEFAULT 15
#define SECONDS_MAX 120
#define NEWEST_VERSION "1.1.0"

/* Codes of the CNI specification. Codes from 100 on are the plugin's own. */
enum code {
	CODE_VERSION = 1,
	CODE_NO_CONTAINER = 3,
	CODE_ENVIRONMENT = 4,
	CODE_IO = 5,
	CODE_DECODE = 6,
	CODE_CONFIGURATION = 7,
	CODE_LATER = 11,
	CODE_NOT_AVAILABLE = 50,
	CODE_REFUSED = 100,
};

/* The version in which answers are written. */
static char answer_version[16] = NEWEST_VERSION;
/* True for DEL: then a failure that does not concern the input only writes a message, because a pod must be removable. */
static bool is_removal;
/* Milliseconds of the monotonic clock at which the plugin gives up. */
static int64_t deadline;

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until `fd` is ready. Returns false, with errno ETIMEDOUT, at the deadline. */
static bool wait_for(int fd, short events)
{
	struct pollfd wanted = { fd, events, 0 };
	for (;;) {
		int64_t left = deadline - now_ms();
		int ready = left <= 0 ? 0 : poll(&wanted, 1, (int)left);
		if (ready > 0)
			return true;
		if (ready == 0)
			errno = ETIMEDOUT;
		if (ready == 0 || errno != EINTR)
			return false;
	}
}

/* A text in a buffer of fixed size. What does not fit sets `is_cut`. `at` always ends with a zero octet. */
struct text {
	char *at;
	size_t used, room;
	bool is_cut;
};

static void add_octet(struct text *text, char octet)
{
	if (text->used + 1 >= text->room) {
		text->is_cut = true;
		return;
	}
	text->at[text->used++] = octet;
	text->at[text->used] = 0;
}

static void add(struct text *text, const char *more)
{
	while (*more)
		add_octet(text, *more++);
}

/* Adds a JSON string. Octets that are not printable ASCII become a question mark. */
static void add_string(struct text *text, const char *value)
{
	add_octet(text, '"');
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			add_octet(text, '\\');
		add_octet(text, *value >= ' ' && *value < 127 ? *value : '?');
	}
	add_octet(text, '"');
}

static bool write_all(int fd, const char *at, size_t size)
{
	while (size > 0) {
		ssize_t written = write(fd, at, size);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		at += written;
		size -= (size_t)written;
	}
	return true;
}

/* Writes the error answer and ends the plugin. `message` says what happened. The details say what was found, what was expected,
 * and what to do next. */
__attribute__((format(printf, 3, 4))) static _Noreturn void fail(enum code code, const char *message, const char *format, ...)
{
	char details[DETAILS_MAX], octets[3 * DETAILS_MAX], number[16];
	struct text answer = { octets, 0, sizeof(octets), false };
	va_list values;
	va_start(values, format);
	vsnprintf(details, sizeof(details), format, values);
	va_end(values);
	if (is_removal && code != CODE_DECODE && code != CODE_VERSION) {
		fprintf(stderr, "namegate-cni: %s: %s\n", message, details);
		exit(0);
	}
	snprintf(number, sizeof(number), "%d", (int)code);
	add(&answer, "{\"cniVersion\":");
	add_string(&answer, answer_version);
	add(&answer, ",\"code\":");
	add(&answer, number);
	add(&answer, ",\"msg\":");
	add_string(&answer, message);
	add(&answer, ",\"details\":");
	add_string(&answer, details);
	add(&answer, "}\n");
	write_all(STDOUT_FILENO, answer.at, answer.used);
	exit(1);
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);
	if (!value || !*value)
		fail(CODE_ENVIRONMENT, "a variable is missing", "%s: expected a value from the container runtime", name);
	return value;
}

#endif
