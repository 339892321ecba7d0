/* Sends one DNS query from a socket with a mark, as a user other than root who has CAP_NET_RAW or CAP_NET_ADMIN. Every
 * program that can open raw sockets can do this. The tests of REDIRECT compile and run it.
 *   marked-query UID MARK SERVER udp|tcp
 * Asks for the addresses of www.shop.test. Prints `answer` if an answer arrives within a second, otherwise `none`. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static const unsigned char query[] = { 0, 31, 0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 'w', 'w', 'w', 4,
				       's', 'h', 'o', 'p', 4, 't', 'e', 's', 't', 0, 0, 1, 0, 1 };

/* The user who makes a socket owns it, so the user changes first. The capability is kept. */
static int become(unsigned int uid)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .effective = 1 << CAP_NET_RAW, .permitted = 1 << CAP_NET_RAW } };
	if (uid == 0)
		return 0;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresuid(uid, uid, uid) < 0)
		return -1;
	return (int)syscall(SYS_capset, &header, data);
}

int main(int count, char **argument)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(53) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(53) };
	struct timeval limit = { .tv_sec = 1 };
	char answer[512];
	if (count != 5 || become(atoi(argument[1])) < 0)
		return 2;
	int mark = (int)strtol(argument[2], NULL, 0), is_udp = strcmp(argument[4], "udp") == 0;
	int is_six = strchr(argument[3], ':') != NULL;
	int fd = socket(is_six ? AF_INET6 : AF_INET, is_udp ? SOCK_DGRAM : SOCK_STREAM, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0)
		return 3;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	inet_pton(AF_INET, argument[3], &four.sin_addr);
	inet_pton(AF_INET6, argument[3], &six.sin6_addr);
	int connected = is_six ? connect(fd, (struct sockaddr *)&six, sizeof(six)) :
				 connect(fd, (struct sockaddr *)&four, sizeof(four));
	size_t skip = is_udp ? 2 : 0;
	if (connected < 0 || send(fd, query + skip, sizeof(query) - skip, MSG_NOSIGNAL) < 0 ||
	    recv(fd, answer, sizeof(answer), 0) <= 0)
		puts("none");
	else
		puts("answer");
	return 0;
}
