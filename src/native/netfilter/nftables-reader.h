/* A thread requests and receives a listing. The kernel walks a whole set again for each part of a listing, and for a long set
 * this walk would block the event loop too long. The event loop takes the parts one by one and chooses how long it waits for
 * each. Parts that the loop has not taken are bounded by PARTS_MAX. At the bound the thread waits. nftables.c includes this file. */
#ifndef NAMEGATE_NFTABLES_READER_H
#define NAMEGATE_NFTABLES_READER_H

#include <time.h>

/* Most octets of parts that were received and not yet taken. */
#define PARTS_MAX (4 << 20)

struct part {
	struct part *next;
	size_t size;
	char octets[];
};

/* The lock protects the fields from `first` to `result`. */
struct reader {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct part *first, **last;
	size_t waiting;
	bool over, ending;
	/* The outcome when the listing is over: 0, or -errno. */
	int result;
	int fd;
	char *request;
	size_t size;
	char buffer[ROOM];
};

/* True if these octets contain the end of a listing. */
static bool ends_listing(const char *octets, size_t size)
{
	int left = (int)size;
	for (const struct nlmsghdr *m = (const struct nlmsghdr *)octets; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left))
		if (m->nlmsg_type == NLMSG_DONE || m->nlmsg_type == NLMSG_ERROR)
			return true;
	return false;
}

/* Hands a part to the loop. Returns false if the loop wants no more parts. */
static bool reader_put(struct reader *reader, struct part *part)
{
	pthread_mutex_lock(&reader->lock);
	while (reader->waiting > PARTS_MAX && !reader->ending)
		pthread_cond_wait(&reader->changed, &reader->lock);
	bool wanted = !reader->ending;
	if (wanted) {
		*reader->last = part;
		reader->last = &part->next;
		reader->waiting += part->size;
		pthread_cond_broadcast(&reader->changed);
	}
	pthread_mutex_unlock(&reader->lock);
	return wanted;
}

/* Returns 0 if everything was received or the loop wants no more parts, else -errno. */
static int reader_receive(struct reader *reader)
{
	int result = netlink_send(reader->fd, reader->request, reader->size);
	while (result == 0) {
		ssize_t got = netlink_receive(reader->fd, reader->buffer, ROOM, 0);
		if (got <= 0)
			return got < 0 ? (int)got : -EPIPE;
		struct part *part = malloc(sizeof(*part) + (size_t)got);
		if (!part)
			return -ENOMEM;
		part->next = NULL;
		part->size = (size_t)got;
		memcpy(part->octets, reader->buffer, part->size);
		bool last = ends_listing(reader->buffer, part->size);
		bool wanted = reader_put(reader, part);
		if (!wanted)
			free(part);
		if (last || !wanted)
			return 0;
	}
	return result;
}

static void *reader_run(void *argument)
{
	struct reader *reader = argument;
	int result = reader_receive(reader);
	pthread_mutex_lock(&reader->lock);
	reader->result = result;
	reader->over = true;
	pthread_cond_broadcast(&reader->changed);
	pthread_mutex_unlock(&reader->lock);
	return NULL;
}

static void reader_free(struct reader *reader)
{
	while (reader->first) {
		struct part *part = reader->first;
		reader->first = part->next;
		free(part);
	}
	close(reader->fd);
	pthread_mutex_destroy(&reader->lock);
	pthread_cond_destroy(&reader->changed);
	free(reader->request);
	free(reader);
}

static struct reader *reader_of(struct call *call)
{
	void *data = NULL;
	if (call->count < 1 || napi_get_value_external(call->env, call->values[0], &data) != napi_ok)
		refuse(call, "a reader", 0);
	return data;
}

/* nlReader(octets, size) -> the reader of the listing that `octets` requests, or -errno. The octets are copied. */
static napi_value nl_reader(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	uint32_t size = unsigned_integer(&call, 1);
	const void *data = octets(&call, 0, size, NULL);
	struct timeval limit = { .tv_sec = ANSWER_SECONDS };
	napi_value result;
	if (call.bad)
		return NULL;
	struct reader *reader = calloc(1, sizeof(*reader));
	if (!reader)
		return number(env, -ENOMEM);
	reader->last = &reader->first;
	pthread_mutex_init(&reader->lock, NULL);
	/* The clock of nl_part. musl has no pthread_cond_clockwait. */
	pthread_condattr_t steady;
	pthread_condattr_init(&steady);
	pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	pthread_cond_init(&reader->changed, &steady);
	pthread_condattr_destroy(&steady);
	reader->size = size;
	reader->request = malloc(size);
	reader->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	int failed = reader->fd < 0 ? errno : reader->request ? 0 : ENOMEM;
	if (!failed) {
		memcpy(reader->request, data, size);
		setsockopt(reader->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		failed = pthread_create(&reader->thread, NULL, reader_run, reader);
	}
	if (failed) {
		reader_free(reader);
		return number(env, -failed);
	}
	napi_create_external(env, reader, NULL, NULL, &result);
	return result;
}

/* nlPart(reader, into, milliseconds) -> octets of the next part, 0 after the last part, -EAGAIN if no part arrives in this time,
 * or -errno. A part has at most ROOM octets. */
static napi_value nl_part(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct reader *reader = reader_of(&call);
	void *into = octets(&call, 1, ROOM, NULL);
	int wait = integer(&call, 2);
	struct timespec until;
	int result = 0;
	if (call.bad)
		return NULL;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += wait * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&reader->lock);
	while (!reader->first && !reader->over && result == 0)
		result = -pthread_cond_timedwait(&reader->changed, &reader->lock, &until);
	struct part *part = reader->first;
	if (part) {
		reader->first = part->next;
		if (!reader->first)
			reader->last = &reader->first;
		reader->waiting -= part->size;
		pthread_cond_broadcast(&reader->changed);
	}
	if (!part)
		result = reader->over ? reader->result : -EAGAIN;
	pthread_mutex_unlock(&reader->lock);
	if (part) {
		memcpy(into, part->octets, part->size);
		result = (int)part->size;
		free(part);
	}
	return number(env, result);
}

/* nlReaderEnd(reader) -> 0. Waits until the kernel has delivered the current part. Call nlReaderEnd exactly once. */
static napi_value nl_reader_end(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct reader *reader = reader_of(&call);
	if (call.bad)
		return NULL;
	pthread_mutex_lock(&reader->lock);
	reader->ending = true;
	pthread_cond_broadcast(&reader->changed);
	pthread_mutex_unlock(&reader->lock);
	pthread_join(reader->thread, NULL);
	reader_free(reader);
	return number(env, 0);
}

#endif
