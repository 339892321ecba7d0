/* Parts of the load generator that all of its modes use: settings, counts, names, the check of answers. */
#ifndef LOAD_H
#define LOAD_H
#include "wire.h"
#include <netinet/in.h>

#define LOST_AFTER (2 * SECOND)
/* Latency buckets: 64 to each doubling of nanoseconds, so a value is known to 1.6%. */
#define SUB_BITS 6
#define BUCKETS ((66 - SUB_BITS) << SUB_BITS)

struct settings {
	const char *mode; /* udp, tcp (pipelined), tcp-single (one query per connection) */
	struct sockaddr_in server;
	char kind;         /* `k`: the same names again and again, `n`: each once */
	uint32_t first;    /* the first number */
	uint32_t names;    /* kind `k`: the number of names */
	uint32_t sockets;  /* sockets or connections */
	uint32_t outstanding;
	uint32_t rate;     /* queries a second, 0: as fast as answers arrive */
	uint64_t count;    /* stop after so many, 0: after `length` */
	uint64_t length;   /* ns */
};

struct counts {
	uint64_t sent, answered, in_time, lost, wrong, late, refused_send, reconnects;
	uint64_t noerror, servfail, refused, other;
	uint64_t elapsed;
	uint64_t latency[BUCKETS];
};

extern struct settings settings;
extern struct counts counts;
extern uint64_t deadline;

/* A query that waits for its answer. */
struct slot {
	uint64_t sent_at;
	uint32_t number;
	uint32_t waits;
};

uint32_t next_number(void);
void write_query(uint8_t *m, uint16_t id, uint32_t number);
/* Counts an answer; false if it does not answer this query. */
int take_answer(const uint8_t *m, size_t size, struct slot *slot, uint64_t now);
int may_send(uint64_t now);
int connect_socket(int type);
void run_udp(void);
void run_tcp(void);
void run_tcp_single(void);
#endif
