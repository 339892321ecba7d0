/* This file sends one request to the daemon's admin socket and reads the answer. The request is HTTP/1.0, so the answer is plain
 * and ends with the connection. */
#ifndef NAMEGATE_CNI_ASK_H
#define NAMEGATE_CNI_ASK_H

#include <sys/socket.h>
#include <sys/un.h>

#include "cni.h"
#include "json.h"

/* The answer of the daemon. `status` is 0 if no whole answer came: then `reason` says why. `body` has no value if it is no JSON. */
struct answer {
	int status;
	const char *reason;
	struct json body;
};

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	while (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		struct timespec pause = { 0, 10000000 };
		/* EAGAIN: the queue of the socket is full, and no event says when it is not. */
		bool may_repeat = (errno == EAGAIN || errno == EINTR) && now_ms() < deadline;
		if (may_repeat && nanosleep(&pause, NULL) == 0)
			continue;
		int error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

static bool send_request(int fd, const struct text *request)
{
	for (size_t sent = 0; sent < request->used;) {
		if (!wait_for(fd, POLLOUT))
			return false;
		ssize_t count = send(fd, request->at + sent, request->used - sent, MSG_NOSIGNAL);
		if (count < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		sent += count > 0 ? (size_t)count : 0;
	}
	return true;
}

/* Reads until the daemon closes the connection or the room is full. Returns the number of octets, or -1. */
static ssize_t receive_answer(int fd, char *into, size_t room)
{
	size_t used = 0;
	while (used < room) {
		if (!wait_for(fd, POLLIN))
			return -1;
		ssize_t got = recv(fd, into + used, room - used, 0);
		if (got == 0)
			break;
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		used += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)used;
}

static struct answer read_answer(char *text, size_t size)
{
	struct answer answer = { 0, "the answer is not HTTP", { NULL, NULL } };
	text[size] = 0;
	char *body = strstr(text, "\r\n\r\n");
	int status = strncmp(text, "HTTP/1.", 7) == 0 && text[7] && text[8] == ' ' ? atoi(text + 9) : 0;
	if (!body || status < 200 || status > 599)
		return answer;
	body += 4;
	struct json_reader reader = { body, text + size, NULL, 0 };
	return (struct answer){ status, "", json_check(&reader) };
}

/* Sends a request; `body` is JSON, or NULL for GET. */
static struct answer ask(const char *socket_path, const char *path, const char *body)
{
	static char octets[ANSWER_MAX + 1];
	char head[REQUEST_MAX + 512], length[32];
	struct text request = { head, 0, sizeof(head), false };
	ssize_t size = -1;
	add(&request, body ? "POST " : "GET ");
	add(&request, path);
	add(&request, " HTTP/1.0\r\nHost: namegate\r\nConnection: close\r\n");
	if (body) {
		snprintf(length, sizeof(length), "%zu", strlen(body));
		add(&request, "Content-Type: application/json\r\nContent-Length: ");
		add(&request, length);
		add(&request, "\r\n");
	}
	add(&request, "\r\n");
	add(&request, body ? body : "");
	int fd = connect_to(socket_path);
	if (fd >= 0 && send_request(fd, &request))
		size = receive_answer(fd, octets, ANSWER_MAX);
	struct answer answer = size < 0 ? (struct answer){ 0, errno == ETIMEDOUT || errno == EAGAIN ? "no answer within the time limit" : strerror(errno), { NULL, NULL } }
			       : size == 0 ? (struct answer){ 0, "the connection ended without an answer", { NULL, NULL } }
					   : read_answer(octets, (size_t)size);
	if (fd >= 0)
		close(fd);
	return answer;
}

#endif
