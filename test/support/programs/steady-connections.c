/* Queries over TCP at a steady rate, each over a connection of its own. test/support/peers/steady-load.ts compiles and
 * runs it. IPv4 only.
 *   steady-connections ADDRESS PORT RATE SECONDS PREFIX [RETRY-MS]   RATE a second for n<i>.PREFIX.test A, until SIGTERM
 * A query is asked once. With RETRY-MS it is asked again this time after its connection began, if the connection was
 * refused or closed, or has no answer by then. Waits up to 7 s for outstanding queries. Prints how many queries were
 * asked, answered, refused and asked again, the most repeats of one query, and how many connections brought no answer:
 * `unopened` were refused or did not open, `ended` were closed with the query outstanding, `silent` had no answer within
 * RETRY-MS, and `closed` is the sum of the first two. Resets a connection that has its answer, so that none waits for
 * its end. */
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

static int sent, noerror, other, unopened, ended, silent, retried, most_retries;
/* By descriptor: whether the query is outstanding. */
static uint8_t asked[OPEN_MAX];

/* The queries without an answer, the oldest first, if queries are repeated. */
struct query {
	int64_t begun_at;
	int number, repeats, fd;
};
static struct query queries[OPEN_MAX];
static int waiting;
static int64_t retry_us;

/* The query with this number, NULL if queries are not repeated. */
static struct query *find(int number)
{
	int low = 0, high = waiting;

	while (low < high) {
		int middle = (low + high) / 2;
		if (queries[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < waiting && queries[low].number == number ? &queries[low] : NULL;
}

static void forget(int number)
{
	struct query *query = find(number);

	if (query == NULL)
		return;
	memmove(query, query + 1, (char *)&queries[--waiting] - (char *)query);
}

/* The connection of a query is over without an answer. */
static void fail(int fd, int number, int *counter)
{
	struct query *query = find(number);

	++*counter;
	if (fd >= 0)
		close(fd);
	if (query != NULL)
		query->fd = -1;
}

static int connect_for(int epoll, const struct sockaddr_in *to, int number)
{
	struct linger reset = { .l_onoff = 1 };
	struct epoll_event event = { .events = EPOLLOUT };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0 || fd >= OPEN_MAX || (connect(fd, (struct sockaddr *)to, sizeof(*to)) < 0 && errno != EINPROGRESS)) {
		perror("connect");
		fail(fd, number, &unopened);
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	asked[fd] = 0;
	event.data.u64 = (uint64_t)number << 32 | fd;
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	return fd;
}

static void begin_one(int epoll, const struct sockaddr_in *to)
{
	int number = sent++;

	if (retry_us > 0 && waiting < OPEN_MAX)
		queries[waiting++] = (struct query){ now_us(), number, 0, -1 };
	int fd = connect_for(epoll, to, number);
	if (find(number) != NULL)
		find(number)->fd = fd;
}

/* Repeats the queries that have no answer in time. */
static void retry(int epoll, const struct sockaddr_in *to)
{
	int64_t now = now_us();

	for (struct query *query = queries; query < queries + waiting; query++) {
		if (query->begun_at > now - retry_us)
			continue;
		if (query->fd >= 0)
			fail(query->fd, query->number, asked[query->fd] ? &silent : &unopened);
		retried += query->repeats == 0;
		if (++query->repeats > most_retries)
			most_retries = query->repeats;
		query->begun_at = now;
		query->fd = connect_for(epoll, to, query->number);
	}
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
	int number = event->data.u64 >> 32;
	struct epoll_event next = { .events = EPOLLIN, .data = event->data };
	uint8_t in[1024];

	if (!asked[fd] && (event->events & EPOLLOUT) && !(event->events & EPOLLERR)) {
		asked[fd] = 1;
		epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &next);
		if (ask(fd, number, prefix))
			return;
	}
	ssize_t got = recv(fd, in, sizeof(in), MSG_DONTWAIT);
	if (got < 0 && errno == EAGAIN)
		return;
	/* Answers are small and arrive in one piece. */
	if (got < 14) {
		fail(fd, number, asked[fd] ? &ended : &unopened);
		return;
	}
	if ((in[5] & 15) == 0)
		noerror++;
	else
		other++;
	forget(number);
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct rlimit files = { OPEN_MAX, OPEN_MAX };
	struct epoll_event events[EVENTS];
	int64_t begin = now_us(), end = 0;
	int epoll = epoll_create1(0);

	if (argc < 6 || argc > 7 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
		return 2;
	to.sin_port = htons(atoi(argv[2]));
	int rate = atoi(argv[3]), total = rate * atof(argv[4]);
	retry_us = argc > 6 ? atoi(argv[6]) * 1000LL : 0;
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
		int done = noerror + other + (retry_us > 0 ? 0 : unopened + ended);
		if (end != 0 && (done == sent || now > end))
			break;
		int count = epoll_wait(epoll, events, EVENTS, 1);
		for (int i = 0; i < count; i++)
			go_on(epoll, &events[i], argv[5]);
		if (retry_us > 0)
			retry(epoll, &to);
	}
	printf("{\"sent\":%d,\"noerror\":%d,\"other\":%d,\"closed\":%d,\"unopened\":%d,\"ended\":%d,\"silent\":%d,"
	       "\"retried\":%d,\"mostRetries\":%d}\n",
	       sent, noerror, other, unopened + ended, unopened, ended, silent, retried, most_retries);
	return 0;
}
