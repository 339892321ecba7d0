/* A minimal supervisor for tests. test/support/peers/supervise.ts compiles and runs it.
 *   supervise notify NAME                   receives notices (sd_notify) at a path or @name; prints one line each, with ' | ' for line ends
 *   supervise activate SOCKETS COMMAND...   binds udp:ADDRESS:PORT,tcp:ADDRESS:PORT,... (IPv4; transparent with :t at
 *                                           the end), runs the command with them (LISTEN_FDS), and runs it again with
 *                                           the same ones after it has ended with 0 or was killed
 * `activate` prints `started PID` and `ended CODE`. On SIGTERM it ends the command and itself. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKETS_MAX 16

static volatile sig_atomic_t ending;
static pid_t child;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void run_notify(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t length = offsetof(struct sockaddr_un, sun_path) + strlen(name);
	char text[8192];
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	strncpy(address.sun_path, name, sizeof(address.sun_path) - 1);
	if (name[0] == '@')
		address.sun_path[0] = 0;
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, name[0] == '@' ? length : sizeof(address)) < 0)
		die("notify");
	puts("ready");
	for (;;) {
		fflush(stdout);
		ssize_t got = recv(fd, text, sizeof(text) - 1, 0);
		if (got < 0)
			die("recv");
		text[got] = 0;
		for (char *line = strtok(text, "\n"), *next; line; line = next) {
			next = strtok(NULL, "\n");
			printf("%s%s", line, next ? " | " : "\n");
		}
	}
}

/* `udp:127.0.0.1:5300`, `tcp:0.0.0.0:10053:t` */
static int bind_one(char *text)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	char *kind = strsep(&text, ":"), *host = strsep(&text, ":"), *port = strsep(&text, ":");
	int type = strcmp(kind, "udp") == 0 ? SOCK_DGRAM : SOCK_STREAM, on = 1, room = 64 << 20;
	int fd = socket(AF_INET, type, 0);

	address.sin_port = htons(atoi(port));
	inet_pton(AF_INET, host, &address.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	if (text != NULL && setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof(on)) < 0)
		die("transparent");
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || (type == SOCK_STREAM && listen(fd, 4096) < 0))
		die("bind");
	return fd;
}

static void start(int *fds, int count, char **command)
{
	char text[32];

	child = fork();
	if (child < 0)
		die("fork");
	if (child > 0) {
		printf("started %d\n", child);
		fflush(stdout);
		return;
	}
	for (int i = 0; i < count; i++)
		dup2(fds[i], 3 + i);
	snprintf(text, sizeof(text), "%d", getpid());
	setenv("LISTEN_PID", text, 1);
	snprintf(text, sizeof(text), "%d", count);
	setenv("LISTEN_FDS", text, 1);
	execvp(command[0], command);
	die(command[0]);
}

static void end(int signal)
{
	(void)signal;
	ending = 1;
	if (child > 0)
		kill(child, SIGTERM);
}

static int run_activate(char *sockets, char **command)
{
	int fds[SOCKETS_MAX], count = 0, status;

	signal(SIGTERM, end);
	/* At the numbers where the command expects them, and first above these, so that none overwrites another. */
	for (char *one; count < SOCKETS_MAX && (one = strsep(&sockets, ","));) {
		int fd = bind_one(one);
		fds[count++] = fcntl(fd, F_DUPFD, 100);
		close(fd);
	}
	do {
		start(fds, count, command);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		printf("ended %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
		fflush(stdout);
	} while (!ending && (WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "notify") == 0)
		run_notify(argv[2]);
	if (argc > 3 && strcmp(argv[1], "activate") == 0)
		return run_activate(argv[2], argv + 3);
	return 2;
}
