/* One query per TCP connection: connect, ask, read the answer, close, again; OUTSTANDING of them at a time. Latency is
 * from connect to the whole answer. The client closes first, so its ports wait in TIME_WAIT. The namespace of this program
 * reuses them (net.ipv4.tcp_tw_reuse=1). */
#define _GNU_SOURCE
#include "load.h"
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 256

struct visit {
	int fd;
	int asked;
	size_t have;
	struct slot slot;
	uint8_t in[MESSAGE];
};

static struct visit visits[MOST];
static int events_of;
static uint32_t open_visits;

static void ask(struct visit *v)
{
	struct epoll_event event = {EPOLLIN, {.ptr = v}};
	uint8_t frame[2 + QUERY];

	put16(frame, QUERY);
	write_query(frame + 2, (uint16_t)v->slot.number, v->slot.number);
	v->asked = send(v->fd, frame, sizeof frame, MSG_NOSIGNAL) == (ssize_t)sizeof frame;
	if (!v->asked)
		event.events = EPOLLOUT;
	if (epoll_ctl(events_of, EPOLL_CTL_MOD, v->fd, &event) < 0)
		epoll_ctl(events_of, EPOLL_CTL_ADD, v->fd, &event);
}

static void begin(struct visit *v)
{
	uint64_t now = now_ns();

	if (!may_send(now))
		return;
	v->slot = (struct slot){now, next_number(), 1};
	v->have = 0;
	v->fd = connect_socket(SOCK_STREAM);
	counts.sent++;
	open_visits++;
	ask(v);
}

static void end(struct visit *v)
{
	counts.lost += v->slot.waits;
	v->slot.waits = 0;
	close(v->fd);
	v->fd = -1;
	open_visits--;
	begin(v);
}

static void serve(struct visit *v, uint32_t events)
{
	ssize_t n;

	if (!v->asked) {
		if (events & (EPOLLERR | EPOLLHUP))
			end(v);
		else
			ask(v);
		return;
	}
	n = recv(v->fd, v->in + v->have, sizeof v->in - v->have, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		counts.reconnects++;
		end(v);
		return;
	}
	v->have += (size_t)n;
	if (v->have < 2 || v->have < 2u + get16(v->in))
		return;
	if (get16(v->in + 2) != (uint16_t)v->slot.number || !take_answer(v->in + 2, get16(v->in), &v->slot, now_ns()))
		counts.wrong++;
	end(v);
}

void run_tcp_single(void)
{
	struct epoll_event events[MOST];
	uint64_t swept = now_ns();

	if (settings.outstanding > MOST)
		settings.outstanding = MOST;
	events_of = epoll_create1(EPOLL_CLOEXEC);
	for (uint32_t i = 0; i < settings.outstanding; i++)
		visits[i].fd = -1;
	for (uint32_t i = 0; i < settings.outstanding; i++)
		begin(&visits[i]);
	while (open_visits > 0) {
		int count = epoll_wait(events_of, events, MOST, 50);
		uint64_t now = now_ns();

		for (int i = 0; i < count; i++)
			serve(events[i].data.ptr, events[i].events);
		if (now - swept < 100 * 1000000)
			continue;
		swept = now;
		for (uint32_t i = 0; i < settings.outstanding; i++)
			if (visits[i].fd >= 0 && now > visits[i].slot.sent_at + LOST_AFTER)
				end(&visits[i]);
	}
}
