/* Queries over TCP at a steady rate, each once and over a connection of its own. test/support/peers/steady-load.ts
 * compiles and runs it. IPv4 only.
 *   steady-connections ADDRESS PORT RATE SECONDS PREFIX   RATE a second for n<i>.PREFIX.test A, until SIGTERM
 * Waits up to 7 s for outstanding queries. Prints how many were asked, answered, refused, and lost with a connection
 * that was refused or closed. Resets a connection that has its answer, so that none waits for its end. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "steady.h"

#define OPEN_MAX 60000
#define EVENTS 256
#define WAIT_US 7000000LL

static int sent, noerror, other, closed;
/* By descriptor: whether the query is outstanding. */
static uint8_t asked[OPEN_MAX];

static void begin_one(int epoll, const struct sockaddr_in *to)
{
	struct linger reset = { .l_onoff = 1 };
	struct epoll_event event = { .events = EPOLLOUT };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	sent++;
	if (fd < 0 || fd >= OPEN_MAX || (connect(fd, (struct sockaddr *)to, sizeof(*to)) < 0 && errno != EINPROGRESS)) {
		perror("connect");
		closed++;
		if (fd >= 0)
			close(fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	asked[fd] = 0;
	event.data.u64 = (uint64_t)(sent - 1) << 32 | fd;
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static int ask(int fd, unsigned number, const char *prefix)
{
	uint8_t out[256];
	int size = write_framed(out, number, number % NAMES, prefix);

	return send(fd, out, size, MSG_NOSIGNAL) == size;
}

static void go_on(int epoll, const struct epoll_event *event, const char *prefix)
{
	int fd = (uint32_t)event->data.u64;
	struct epoll_event next = { .events = EPOLLIN, .data = event->data };
	uint8_t in[1024];

	if (!asked[fd] && (event->events & EPOLLOUT) && !(event->events & EPOLLERR)) {
		asked[fd] = 1;
		epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &next);
		if (ask(fd, event->data.u64 >> 32, prefix))
			return;
	}
	ssize_t got = recv(fd, in, sizeof(in), MSG_DONTWAIT);
	if (got < 0 && errno == EAGAIN)
		return;
	/* Answers are small and arrive in one piece. */
	if (got < 14)
		closed++;
	else if ((in[5] & 15) == 0)
		noerror++;
	else
		other++;
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct rlimit files = { OPEN_MAX, OPEN_MAX };
	struct epoll_event events[EVENTS];
	int64_t begin = now_us(), end = 0;
	int epoll = epoll_create1(0);

	if (argc != 6 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
		return 2;
	to.sin_port = htons(atoi(argv[2]));
	int rate = atoi(argv[3]), total = rate * atof(argv[4]);
	setrlimit(RLIMIT_NOFILE, &files);
	signal(SIGTERM, end_load);
	for (;;) {
		int64_t now = now_us();
		if (ending)
			total = sent;
		while (sent < total && begin + sent * 1000000LL / rate <= now)
			begin_one(epoll, &to);
		if (sent == total && end == 0)
			end = now + WAIT_US;
		if (end != 0 && (noerror + other + closed == sent || now > end))
			break;
		int count = epoll_wait(epoll, events, EVENTS, 1);
		for (int i = 0; i < count; i++)
			go_on(epoll, &events[i], argv[5]);
	}
	printf("{\"sent\":%d,\"noerror\":%d,\"other\":%d,\"closed\":%d}\n", sent, noerror, other, closed);
	return 0;
}
