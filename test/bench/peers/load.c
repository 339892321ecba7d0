/* The load generator. One process, one thread, no allocation once it runs.
 *   load MODE ADDRESS PORT KIND FIRST NAMES SOCKETS OUTSTANDING RATE COUNT SECONDS
 * MODE udp, tcp or tcp-single; KIND k or n (wire.h). RATE 0 is a closed loop: OUTSTANDING queries wait in all, and each
 * answer lets a new one go. With another RATE, queries are sent at their times, with any answers, and latency
 * counts from the moment of sending. COUNT 0: ends after SECONDS. An answer counts if id, question and flags are right.
 * A query without an answer after 2 s is lost. At the end, the program waits for outstanding queries. Prints one line of
 * JSON: counts, ns, the latency buckets as [lowest ns, count]. Times are CLOCK_MONOTONIC. */
#define _GNU_SOURCE
#include "load.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct settings settings;
struct counts counts;
uint64_t deadline;
static uint32_t given;

/* Steady names come in a fixed order that is not the order of their numbers. */
uint32_t next_number(void)
{
	uint32_t i = given++;

	return settings.first + (settings.kind == 'k' ? (uint32_t)((uint64_t)i * 7919 % settings.names) : i);
}

void write_query(uint8_t *m, uint16_t id, uint32_t number)
{
	static const uint8_t header[HEADER] = {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1};
	static const uint8_t rest[] = "\2z0\5bench\4test\0\0\1\0\1";
	uint8_t *name = m + QUESTION_AT;

	memcpy(m, header, HEADER);
	put16(m, id);
	name[0] = LABEL;
	name[1] = (uint8_t)settings.kind;
	for (int i = 0; i < LABEL - 1; i++)
		name[2 + i] = (uint8_t)"0123456789abcdef"[number >> (28 - 4 * i) & 15];
	memcpy(name + 1 + LABEL, rest, QUESTION - 1 - LABEL);
	name[1 + LABEL + 2] = (uint8_t)('0' + (number & 3));
	put_opt(name + QUESTION);
}

static uint32_t bucket_of(uint64_t ns)
{
	int high = ns < 2u << SUB_BITS ? 0 : 63 - __builtin_clzll(ns) - SUB_BITS;

	return ((uint32_t)high << SUB_BITS) + (uint32_t)(ns >> high);
}

static uint64_t bucket_low(uint32_t bucket)
{
	uint32_t high = bucket >> SUB_BITS;

	high = high > 1 ? high - 1 : 0;
	return (uint64_t)(bucket - (high << SUB_BITS)) << high;
}

int take_answer(const uint8_t *m, size_t size, struct slot *slot, uint64_t now)
{
	uint8_t asked[QUERY];

	if (!slot->waits || size < HEADER + QUESTION || !(m[2] & 0x80))
		return 0;
	write_query(asked, 0, slot->number);
	if (memcmp(m + QUESTION_AT, asked + QUESTION_AT, QUESTION) != 0)
		return 0;
	slot->waits = 0;
	counts.answered++;
	counts.in_time += now <= deadline;
	counts.latency[bucket_of(now - slot->sent_at)]++;
	switch (m[3] & 15) {
	case 0:
		*(get16(m + 6) > 0 ? &counts.noerror : &counts.other) += 1;
		break;
	case 2:
		counts.servfail++;
		break;
	case 5:
		counts.refused++;
		break;
	default:
		counts.other++;
	}
	return 1;
}

int may_send(uint64_t now)
{
	return now < deadline && (settings.count == 0 || counts.sent < settings.count);
}

int connect_socket(int type)
{
	int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, size = 4 << 20;

	if (fd < 0)
		fail("socket");
	if (type == SOCK_STREAM)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	else
		setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
	if (connect(fd, (struct sockaddr *)&settings.server, sizeof settings.server) < 0 && errno != EINPROGRESS)
		fail("connect");
	return fd;
}

static void print_counts(uint64_t cpu)
{
	const char *between = "";

	printf("{\"sent\":%lu,\"answered\":%lu,\"inTime\":%lu,\"lost\":%lu,\"wrong\":%lu,\"late\":%lu,\"refusedSend\":%lu,\"reconnects\":%lu,",
	       counts.sent, counts.answered, counts.in_time, counts.lost, counts.wrong, counts.late, counts.refused_send,
	       counts.reconnects);
	printf("\"noerror\":%lu,\"servfail\":%lu,\"refused\":%lu,\"other\":%lu,\"elapsedNs\":%lu,\"cpuNs\":%lu,\"next\":%u,\"latency\":[",
	       counts.noerror, counts.servfail, counts.refused, counts.other, counts.elapsed, cpu, settings.first + given);
	for (uint32_t i = 0; i < BUCKETS; i++) {
		if (counts.latency[i] == 0)
			continue;
		printf("%s[%lu,%lu]", between, bucket_low(i), counts.latency[i]);
		between = ",";
	}
	puts("]}");
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void read_settings(char **argv)
{
	settings.mode = argv[1];
	settings.server.sin_family = AF_INET;
	if (inet_pton(AF_INET, argv[2], &settings.server.sin_addr) != 1)
		fail(argv[2]);
	settings.server.sin_port = htons((uint16_t)atoi(argv[3]));
	settings.kind = argv[4][0];
	settings.first = (uint32_t)strtoul(argv[5], NULL, 10);
	settings.names = (uint32_t)strtoul(argv[6], NULL, 10);
	settings.sockets = (uint32_t)strtoul(argv[7], NULL, 10);
	settings.outstanding = (uint32_t)strtoul(argv[8], NULL, 10);
	settings.rate = (uint32_t)strtoul(argv[9], NULL, 10);
	settings.count = strtoull(argv[10], NULL, 10);
	settings.length = (uint64_t)(strtod(argv[11], NULL) * 1e9);
}

int main(int argc, char **argv)
{
	uint64_t began, cpu;

	if (argc != 12) {
		fprintf(stderr, "usage: load MODE ADDRESS PORT KIND FIRST NAMES SOCKETS OUTSTANDING RATE COUNT SECONDS\n");
		return 2;
	}
	read_settings(argv);
	prctl(PR_SET_TIMERSLACK, 1);
	cpu = cpu_ns();
	began = now_ns();
	deadline = began + settings.length;
	if (strcmp(settings.mode, "udp") == 0)
		run_udp();
	else if (strcmp(settings.mode, "tcp") == 0)
		run_tcp();
	else
		run_tcp_single();
	counts.elapsed = now_ns() - began;
	if (settings.count == 0 && counts.elapsed > settings.length)
		counts.elapsed = settings.length;
	print_counts(cpu_ns() - cpu);
	return 0;
}
