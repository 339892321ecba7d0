/* The modes that keep their sockets: UDP, and TCP with many queries on a connection. Each socket has a ring of slots in
 * the order of sending. A query's id is its place in the ring, so an answer finds its slot at once, and lost queries are
 * always at the ring's end. */
#define _GNU_SOURCE
#include "load.h"
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING 4096
#define SOCKETS 256
#define STREAM 65536

struct client {
	int fd;
	uint32_t head, tail; /* slots in use are [tail, head) */
	uint32_t waiting, quota;
	size_t have;
	uint8_t *in;
	struct slot ring[RING];
};

static struct client *clients;
static int events_of;
static int is_tcp;
static uint64_t due; /* open loop: when the next query is due */
static uint32_t turn;

static void open_client(struct client *c)
{
	struct epoll_event event = {EPOLLIN, {.ptr = c}};

	c->fd = connect_socket(is_tcp ? SOCK_STREAM : SOCK_DGRAM);
	c->have = 0;
	epoll_ctl(events_of, EPOLL_CTL_ADD, c->fd, &event);
}

/* Queries on a connection that has ended get no answer. */
static void reopen(struct client *c)
{
	close(c->fd);
	counts.reconnects++;
	for (; c->tail != c->head; c->tail++) {
		counts.lost += c->ring[c->tail % RING].waits;
		c->ring[c->tail % RING].waits = 0;
	}
	c->waiting = 0;
	open_client(c);
}

static void expire(struct client *c, uint64_t now)
{
	for (; c->tail != c->head; c->tail++) {
		struct slot *slot = &c->ring[c->tail % RING];

		if (slot->waits && now - slot->sent_at < LOST_AFTER)
			return;
		counts.lost += slot->waits;
		c->waiting -= slot->waits;
		slot->waits = 0;
	}
}

static uint8_t *add_query(struct client *c, uint8_t *m, uint64_t now)
{
	uint32_t at = c->head % RING;

	c->ring[at] = (struct slot){now, next_number(), 1};
	write_query(m, (uint16_t)(c->head % RING | (c->head / RING & 15) << 12), c->ring[at].number);
	c->head++;
	c->waiting++;
	counts.sent++;
	return m;
}

static void take_back(struct client *c)
{
	c->ring[--c->head % RING].waits = 0;
	c->waiting--;
	counts.refused_send++;
}

static int room(struct client *c)
{
	if (c->head - c->tail == RING)
		expire(c, now_ns());
	return c->head - c->tail < RING;
}

static void send_udp(struct client *c, uint32_t count)
{
	static uint8_t slab[BATCH][QUERY];
	static struct mmsghdr batch[BATCH];
	static struct iovec parts[BATCH];
	uint64_t now = now_ns();
	uint32_t made = 0;
	int sent;

	while (made < count && made < BATCH && room(c) && may_send(now)) {
		parts[made] = (struct iovec){add_query(c, slab[made], now), QUERY};
		batch[made].msg_hdr.msg_iov = &parts[made];
		batch[made].msg_hdr.msg_iovlen = 1;
		made++;
	}
	if (made == 0)
		return;
	do
		sent = sendmmsg(c->fd, batch, made, 0);
	while (sent < 0 && errno == EINTR);
	for (uint32_t i = sent < 0 ? 0 : (uint32_t)sent; i < made; i++)
		take_back(c);
}

static void send_tcp(struct client *c, uint32_t count)
{
	static uint8_t frames[BATCH * (2 + QUERY)];
	uint64_t now = now_ns();
	size_t size = 0;

	for (uint32_t made = 0; made < count && made < BATCH && room(c) && may_send(now); made++) {
		put16(frames + size, QUERY);
		add_query(c, frames + size + 2, now);
		size += 2 + QUERY;
	}
	if (size == 0)
		return;
	ssize_t sent = send(c->fd, frames, size, MSG_NOSIGNAL);

	if (sent < 0 && errno == EAGAIN) /* still connecting */
		for (; size > 0; size -= 2 + QUERY)
			take_back(c);
	else if (sent < 0 || (size_t)sent < size)
		reopen(c);
}

static void send_some(struct client *c, uint32_t count)
{
	if (is_tcp)
		send_tcp(c, count);
	else
		send_udp(c, count);
}

static void take(struct client *c, const uint8_t *m, size_t size, uint64_t now)
{
	uint32_t id = size < 2 ? 0 : get16(m);
	struct slot *slot = &c->ring[id % RING];

	if (take_answer(m, size, slot, now))
		c->waiting--;
	else
		counts.wrong++;
}

static int receive_udp(struct client *c)
{
	static uint8_t slab[BATCH][MESSAGE];
	static struct mmsghdr batch[BATCH];
	static struct iovec parts[BATCH];
	uint64_t now;
	int got;

	if (parts[0].iov_len == 0)
		for (int i = 0; i < BATCH; i++) {
			parts[i] = (struct iovec){slab[i], MESSAGE};
			batch[i].msg_hdr.msg_iov = &parts[i];
			batch[i].msg_hdr.msg_iovlen = 1;
		}
	got = recvmmsg(c->fd, batch, BATCH, MSG_DONTWAIT, NULL);
	now = now_ns();
	for (int i = 0; i < got; i++)
		take(c, slab[i], batch[i].msg_len, now);
	return got;
}

static void receive_tcp(struct client *c)
{
	ssize_t n = recv(c->fd, c->in + c->have, STREAM - c->have, 0);
	uint64_t now = now_ns();
	size_t at = 0;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		reopen(c);
		return;
	}
	c->have += (size_t)n;
	while (c->have - at >= 2 && c->have - at >= 2u + get16(c->in + at)) {
		take(c, c->in + at + 2, get16(c->in + at), now);
		at += 2u + get16(c->in + at);
	}
	memmove(c->in, c->in + at, c->have - at);
	c->have -= at;
}

/* Sends queries that are due. Returns ns until the next one. */
static uint64_t send_due(uint64_t now)
{
	uint64_t step = SECOND / settings.rate;

	for (; due <= now && may_send(now); due += step) {
		counts.late += now - due > SECOND / 1000;
		send_some(&clients[turn++ % settings.sockets], 1);
	}
	return due > now ? due - now : 0;
}

static uint32_t waiting_in_all(void)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < settings.sockets; i++)
		sum += clients[i].waiting;
	return sum;
}

static void fill(struct client *c)
{
	if (settings.rate == 0 && c->waiting < c->quota)
		send_some(c, c->quota - c->waiting);
}

static void loop(void)
{
	struct epoll_event events[SOCKETS];
	uint64_t swept = now_ns();

	for (;;) {
		uint64_t now = now_ns();
		uint64_t wait = 20 * 1000000;

		if (now - swept > 50 * 1000000) {
			for (uint32_t i = 0; i < settings.sockets; i++) {
				expire(&clients[i], now);
				fill(&clients[i]);
			}
			swept = now;
		}
		if (!may_send(now) && waiting_in_all() == 0)
			return;
		if (settings.rate > 0 && may_send(now)) {
			uint64_t next = send_due(now);

			wait = next < wait ? next : wait;
		}
		struct timespec t = {0, (long)wait};
		int count = epoll_pwait2(events_of, events, SOCKETS, &t, NULL);

		for (int i = 0; i < count; i++) {
			struct client *c = events[i].data.ptr;

			if (is_tcp)
				receive_tcp(c);
			else
				receive_udp(c);
			fill(c);
		}
	}
}

static void run(void)
{
	if (settings.sockets > SOCKETS)
		settings.sockets = SOCKETS;
	clients = calloc(settings.sockets, sizeof *clients);
	events_of = epoll_create1(EPOLL_CLOEXEC);
	if (clients == NULL || events_of < 0)
		fail("epoll_create1");
	for (uint32_t i = 0; i < settings.sockets; i++) {
		clients[i].quota = settings.outstanding / settings.sockets + (i < settings.outstanding % settings.sockets);
		clients[i].in = is_tcp ? malloc(STREAM) : NULL;
		open_client(&clients[i]);
	}
	due = now_ns();
	for (uint32_t i = 0; i < settings.sockets; i++)
		fill(&clients[i]);
	loop();
}

void run_udp(void)
{
	run();
}

void run_tcp(void)
{
	is_tcp = 1;
	run();
}
