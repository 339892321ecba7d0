/* Tries ways out of a sandbox, all at once, each in a process of its own, and prints one line for each: `NAME open` or
 * `NAME closed: WHY`. Environment variables (names below) describe the world. As `ways-out serve PORT` it is a part of
 * that world: it echoes UDP datagrams of any size on every address. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 4000

static char why[256] = "no answer";

static bool closed(const char *what)
{
	snprintf(why, sizeof(why), "%s: %s", what, strerror(errno));
	return false;
}

static const char *given(const char *name)
{
	const char *value = getenv(name);
	if (!value) {
		printf("%s is not set\n", name);
		exit(2);
	}
	return value;
}

/* Prefixed with a character, because `exec` removes variables that lead to a socket. */
static const char *hidden_path(void) { return given("HIDDEN") + 1; }

static int address_of(const char *text, uint16_t port, struct sockaddr_storage *into, socklen_t *size)
{
	struct sockaddr_in *in = (struct sockaddr_in *)into;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)into;
	memset(into, 0, sizeof(*into));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		*size = sizeof(*in);
		return AF_INET;
	}
	inet_pton(AF_INET6, text, &in6->sin6_addr);
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	*size = sizeof(*in6);
	return AF_INET6;
}

static bool readable(int fd)
{
	struct pollfd ready = { fd, POLLIN, 0 };
	return poll(&ready, 1, PATIENCE_MS) == 1;
}

static bool connects(const char *text, uint16_t port)
{
	struct sockaddr_storage to;
	socklen_t size;
	int fd = socket(address_of(text, port, &to, &size), SOCK_STREAM | SOCK_NONBLOCK, 0);
	int error = 0;
	socklen_t length = sizeof(error);
	if (fd < 0)
		return closed("socket");
	if (connect(fd, (struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)
		return closed("connect");
	struct pollfd ready = { fd, POLLOUT, 0 };
	if (poll(&ready, 1, PATIENCE_MS) != 1)
		return false;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
	/* An open connection would keep its old address. */
	struct linger reset = { 1, 0 };
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	errno = error;
	return error == 0 || closed("connect");
}

/* An A query for a name; returns its length. */
static size_t query_for(const char *name, uint8_t *into)
{
	static const uint8_t head[12] = { 0x4e, 0x47, 1, 0, 0, 1 };
	size_t at = sizeof(head);
	memcpy(into, head, sizeof(head));
	for (const char *label = name; *label;) {
		size_t length = strcspn(label, ".");
		into[at++] = (uint8_t)length;
		memcpy(into + at, label, length);
		at += length;
		label += length + (label[length] == '.');
	}
	memcpy(into + at, (uint8_t[]){ 0, 0, 1, 0, 1 }, 5);
	return at + 5;
}

/* Open: an answer with records. */
static bool answers(const uint8_t *reply, ssize_t got)
{
	if (got < 12)
		return false;
	snprintf(why, sizeof(why), "rcode %d, %d records", reply[3] & 15, reply[7]);
	return (reply[3] & 15) == 0 && reply[7] > 0;
}

static bool asks(const char *server, uint16_t port, const char *name, bool tcp)
{
	struct sockaddr_storage to;
	socklen_t size;
	uint8_t octets[1500];
	size_t length = query_for(name, octets + 2);
	int fd = socket(address_of(server, port, &to, &size), tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
	struct timeval limit = { .tv_sec = PATIENCE_MS / 1000 };
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&to, size) < 0)
		return closed("connect");
	octets[0] = 0;
	octets[1] = (uint8_t)length;
	if (send(fd, octets + (tcp ? 0 : 2), length + (tcp ? 2 : 0), 0) < 0)
		return closed("send");
	if (!readable(fd))
		return false;
	ssize_t got = recv(fd, octets, sizeof(octets), 0);
	if (got < 0)
		return closed("recv");
	return tcp ? answers(octets + 2, got - 2) : answers(octets, got);
}

static bool echoes(const char *text, size_t length, const char *source)
{
	static uint8_t octets[8000];
	struct sockaddr_storage to, from;
	socklen_t size, from_size;
	int on = 1, fd = socket(address_of(text, 9999, &to, &size), SOCK_DGRAM, 0);
	if (source) {
		address_of(source, 0, &from, &from_size);
		setsockopt(fd, IPPROTO_IP, 15 /* IP_FREEBIND */, &on, sizeof(on));
		if (bind(fd, (struct sockaddr *)&from, from_size) < 0)
			return closed("bind");
	}
	if (sendto(fd, octets, length, 0, (struct sockaddr *)&to, size) < 0)
		return closed("sendto");
	return readable(fd) && recv(fd, octets, sizeof(octets), 0) == (ssize_t)length;
}

static bool opens_socket(int family, int type, int protocol)
{
	return socket(family, type, protocol) >= 0 || closed("socket");
}

static bool resolves(const char *name)
{
	struct addrinfo *found = NULL;
	int result = getaddrinfo(name, NULL, NULL, &found);
	if (result != 0)
		snprintf(why, sizeof(why), "getaddrinfo: %s", gai_strerror(result));
	return result == 0;
}

static bool succeeds(const char *command)
{
	char line[256];
	snprintf(line, sizeof(line), "(%s) >/dev/null 2>&1", command);
	int status = system(line);
	snprintf(why, sizeof(why), "exit %d", WEXITSTATUS(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool speaks_to(const char *name, bool abstract)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	strncpy(to.sun_path + abstract, name, sizeof(to.sun_path) - 2);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name) + !abstract);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return connect(fd, (struct sockaddr *)&to, size) == 0 || closed("connect");
}

/* Namespaces of the first process, and the owners of our own. */
static bool enters(const char *which)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/1/ns/%s", which);
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return closed("open");
	return setns(fd, 0) == 0 || closed("setns");
}

static bool enters_owner(unsigned long relation)
{
	int own = open("/proc/self/ns/net", O_RDONLY), user = open("/proc/self/ns/user", O_RDONLY);
	int owner = ioctl(relation == 0xb702 ? user : own, relation);
	if (owner < 0)
		return closed("ioctl");
	return setns(owner, CLONE_NEWUSER) == 0 || closed("setns");
}

static bool sees_the_gate(void)
{
	DIR *processes = opendir("/proc");
	char path[300], line[4096];
	for (struct dirent *each; processes && (each = readdir(processes));) {
		snprintf(path, sizeof(path), "/proc/%s/cmdline", each->d_name);
		int fd = open(path, O_RDONLY);
		ssize_t got = fd < 0 ? 0 : read(fd, line, sizeof(line) - 1);
		/* The path in the sources or in the build. */
		if (got > 0 && (memmem(line, (size_t)got, "src/main.", 9) || memmem(line, (size_t)got, "bin/start.", 10)))
			return true;
	}
	strcpy(why, "no such process");
	return false;
}

static bool other_resolver_udp(void) { return asks(given("OTHER_DNS"), 53, given("DENIED"), false); }
static bool other_resolver_udp6(void) { return asks(given("OTHER_DNS6"), 53, given("DENIED"), false); }
static bool other_resolver_tcp(void) { return asks(given("OTHER_DNS"), 53, given("DENIED"), true); }
static bool own_resolver(void) { return resolves(given("DENIED")); }
static bool resolver_elsewhere(void) { return asks(given("OTHER_DNS"), 5353, given("DENIED"), false); }
static bool dns_over_tls(void) { return connects(given("OTHER_DNS"), 853); }
static bool never_learned(void) { return connects(given("UNLEARNED"), 80); }
static bool never_learned6(void) { return connects(given("UNLEARNED6"), 80); }
static bool never_learned_udp(void) { return echoes(given("UNLEARNED"), 100, NULL); }
static bool fragments(void) { return echoes(given("UNLEARNED"), 7000, NULL); }
static bool learned_other_port(void) { return resolves(given("ALLOWED")) && connects(given("LEARNED"), 8080); }
static bool learned_other_protocol(void) { return resolves(given("ALLOWED")) && echoes(given("LEARNED"), 100, NULL); }
static bool forged_source(void) { return resolves(given("ALLOWED")) && echoes(given("LEARNED"), 100, given("FORGED")); }
static bool guarded_address(void) { return resolves(given("GUARDED")) && connects(given("CALLER"), 80); }
static bool caller_by_gateway(void) { return connects(given("GATEWAY"), 80); }
static bool raw_ipv4(void) { return opens_socket(AF_INET, SOCK_RAW, IPPROTO_RAW); }
static bool raw_ipv6(void) { return opens_socket(AF_INET6, SOCK_RAW, IPPROTO_RAW); }
static bool packet_socket(void) { return opens_socket(AF_PACKET, SOCK_RAW, htons(0x0003)); }
static bool icmp_raw(void) { return opens_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP); }
static bool vsock(void) { return opens_socket(40, SOCK_STREAM, 0); }
static bool bluetooth(void) { return opens_socket(31, SOCK_RAW, 1); }
static bool flush_rules(void) { return succeeds("nft flush ruleset"); }
static bool add_rule(void) { return succeeds("nft add table inet mine"); }
static bool add_link(void) { return succeeds("ip link add mine type dummy"); }
static bool move_route(void) { return succeeds("ip route replace default dev lo"); }
static bool enter_net(void) { return enters("net"); }
static bool enter_user(void) { return enters("user"); }
static bool enter_mnt(void) { return enters("mnt"); }
static bool enter_owner(void) { return enters_owner(0xb701 /* NS_GET_USERNS */); }
static bool enter_parent(void) { return enters_owner(0xb702 /* NS_GET_PARENT */); }
static bool abstract_socket(void) { return speaks_to(given("ABSTRACT"), true); }
static bool hidden_socket(void) { return speaks_to(hidden_path(), false); }
static bool kill_gate(void) { return kill(atoi(given("GATE")), SIGKILL) == 0 || closed("kill"); }
static bool trace_first(void) { return ptrace(PTRACE_ATTACH, 1, 0, 0) == 0 || closed("ptrace"); }
static bool kill_first(void) { return kill(1, SIGKILL) == 0 && usleep(300000) == 0 && (errno = EPERM, closed("it lives on")); }
static bool write_resolv(void) { return open("/etc/resolv.conf", O_WRONLY) >= 0 || closed("open"); }
static bool mount_proc(void) { return mount("proc", "/proc", "proc", 0, NULL) == 0 || closed("mount"); }
static bool unmount_resolv(void) { return umount2("/etc/resolv.conf", MNT_DETACH) == 0 || closed("umount"); }
static bool unmount_hidden(void) { return umount2(hidden_path(), MNT_DETACH) == 0 || closed("umount"); }
static bool kernel_settings(void) { return open("/proc/sys/kernel/core_pattern", O_WRONLY) >= 0 || closed("open"); }
static bool io_uring(void) { char room[120] = ""; return syscall(425, 1, room) >= 0 || closed("io_uring_setup"); }
static bool push_keys(void) { char key = 'x'; return ioctl(0, 0x5412, &key) == 0 || (errno != EPERM) || closed("ioctl"); }

/* The rules pass packets with namegate's mark, and only the rules may set it. */
static bool set_mark(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), mark = 0x4e474a;
	return setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) == 0 || closed("SO_MARK");
}

/* In a user namespace of its own it has all capabilities, but only inside that namespace. */
static bool new_user(void)
{
	if (unshare(CLONE_NEWUSER) < 0)
		return closed("unshare");
	return opens_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) || succeeds("nft flush ruleset");
}

static bool new_user_unmounts(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return closed("unshare");
	umount2(hidden_path(), MNT_DETACH);
	return speaks_to(hidden_path(), false);
}

static bool new_network(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return closed("unshare");
	return connects(given("UNLEARNED"), 80);
}

static bool new_privileges(void)
{
	bool may = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
	strcpy(why, "no_new_privs is set");
	return may;
}

static bool inherited_descriptors(void)
{
	for (int fd = 3; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) >= 0) {
			struct stat found;
			fstat(fd, &found);
			if (S_ISSOCK(found.st_mode))
				return true;
		}
	strcpy(why, "no socket is open");
	return false;
}

static bool after_ttl(void)
{
	if (!resolves(given("BRIEF")) || !connects(given("BRIEF_ADDRESS"), 80)) {
		printf("after_ttl open: its address did not work while it lived (%s)\n", why);
		exit(0);
	}
	for (int i = 0; i < 5; i++) {
		sleep(3);
		if (!connects(given("BRIEF_ADDRESS"), 80))
			return false;
	}
	return true;
}

static const struct {
	const char *name;
	bool (*try)(void);
} ways[] = {
#define WAY(name) { #name, name }
	WAY(other_resolver_udp), WAY(other_resolver_udp6), WAY(other_resolver_tcp), WAY(own_resolver), WAY(resolver_elsewhere),
	WAY(dns_over_tls), WAY(never_learned), WAY(never_learned6), WAY(never_learned_udp), WAY(fragments),
	WAY(learned_other_port), WAY(learned_other_protocol), WAY(forged_source), WAY(guarded_address), WAY(caller_by_gateway),
	WAY(after_ttl), WAY(raw_ipv4), WAY(raw_ipv6), WAY(packet_socket), WAY(icmp_raw), WAY(set_mark), WAY(vsock), WAY(bluetooth),
	WAY(flush_rules), WAY(add_rule), WAY(add_link), WAY(move_route), WAY(enter_net), WAY(enter_user), WAY(enter_mnt), WAY(enter_owner), WAY(enter_parent),
	WAY(new_user), WAY(new_user_unmounts), WAY(new_network), WAY(abstract_socket), WAY(hidden_socket), WAY(sees_the_gate),
	WAY(kill_gate), WAY(trace_first), WAY(kill_first), WAY(write_resolv), WAY(mount_proc), WAY(unmount_resolv),
	WAY(unmount_hidden), WAY(kernel_settings), WAY(io_uring), WAY(push_keys), WAY(new_privileges), WAY(inherited_descriptors),
};

static int serve(uint16_t port)
{
	static uint8_t octets[65536];
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) }, from;
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0)
		return 1;
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		struct iovec part = { octets, sizeof(octets) };
		char control[256];
		struct msghdr message = { &from, sizeof(from), &part, 1, control, sizeof(control), 0 };
		int on = 1;
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
		ssize_t got = recvmsg(fd, &message, 0);
		if (got < 0)
			continue;
		/* From the address that was asked: the same control message has the asked address and sets the source of the answer. */
		part.iov_len = (size_t)got;
		sendmsg(fd, &message, 0);
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		return serve((uint16_t)atoi(argv[2]));
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (argc == 2 && !strstr(argv[1], ways[i].name))
			continue;
		if (fork() == 0) {
			bool open = ways[i].try();
			printf(open ? "%s open\n" : "%s closed: %s\n", ways[i].name, why);
			fflush(stdout);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
