/* Shared parts of the programs that load at a steady rate: the end, the time, and the query. Included by steady-dns.c, steady-tcp.c
 * and steady-connections.c. */
#ifndef STEADY_H
#define STEADY_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The number of names that are asked again and again. */
#define NAMES 2000

static volatile sig_atomic_t ending;

static void end_load(int signal)
{
	(void)signal;
	ending = 1;
}

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

/* `n<number>.<prefix>.test` A IN, recursion desired; returns its length. */
static int write_query(uint8_t *out, unsigned id, unsigned number, const char *prefix)
{
	static const uint8_t head[] = { 1, 0, 0, 1, 0, 0, 0, 0, 0, 0 };
	char label[16];
	int at = 12;
	int size = snprintf(label, sizeof(label), "n%u", number);

	out[0] = id >> 8;
	out[1] = id;
	memcpy(out + 2, head, sizeof(head));
	out[at++] = size;
	memcpy(out + at, label, size);
	at += size;
	out[at++] = strlen(prefix);
	memcpy(out + at, prefix, strlen(prefix));
	at += strlen(prefix);
	memcpy(out + at, "\4test\0\0\1\0\1", 10);
	return at + 10;
}

/* The same after its length, as TCP carries it (RFC 1035 4.2.2). */
static inline int write_framed(uint8_t *out, unsigned id, unsigned number, const char *prefix)
{
	int size = write_query(out + 2, id, number, prefix);

	out[0] = size >> 8;
	out[1] = size;
	return size + 2;
}

#endif
