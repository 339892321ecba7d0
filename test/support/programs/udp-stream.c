/* A steady stream of small datagrams, and a receiver that counts them.
 *
 *   udp-stream send RATE SOCKETS ADDRESS PORT KIND [ADDRESS PORT KIND]...
 *   udp-stream receive PORT...
 *
 * `send` sends RATE datagrams a second in all, in turn to the targets, from SOCKETS sockets for each, until SIGTERM. KIND is
 * `a` (must arrive) or `f` (must not), with one `f` for every ten `a`. After a pause of the machine, `send` does not catch up,
 * so that no queue loses a burst. `receive` takes both families on the ports until SIGTERM, and then what still waits in its
 * sockets. Both print `ready`, and one line of JSON at the end. `gaps` has the first numbers that did not arrive, as ranges,
 * and `last` the last number that did. A datagram is its kind and its number among those of its kind. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TARGETS_MAX 8
#define SOCKETS_MAX 256
#define NUMBERS_MAX (64u * 1024 * 1024)
#define FORBIDDEN_EVERY 10
#define BUFFER_OCTETS (64 * 1024 * 1024)
#define TICK_NS 1000000L
#define LATE_TICKS_MAX 20
#define GAPS_MAX 8

struct datagram {
  uint32_t kind;
  uint32_t number;
};

struct target {
  char kind;
  int sockets[SOCKETS_MAX];
  unsigned next;
};

static volatile sig_atomic_t stopped;

static void stop(int signal_number) {
  (void)signal_number;
  stopped = 1;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

static int connect_to(const char *address, const char *port) {
  struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
  struct addrinfo *found;
  if (getaddrinfo(address, port, &hints, &found) != 0) die("address");
  int fd = socket(found->ai_family, SOCK_DGRAM, 0);
  if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0) die("connect");
  freeaddrinfo(found);
  return fd;
}

/* Sends one datagram from the target's next socket; 1 if the kernel took it. */
static int send_one(struct target *target, unsigned sockets, uint32_t number) {
  struct datagram datagram = {(uint32_t)target->kind, number};
  int fd = target->sockets[target->next++ % sockets];
  return send(fd, &datagram, sizeof datagram, 0) == (ssize_t)sizeof datagram;
}

static int run_send(int argc, char **argv) {
  if (argc < 7) return 2;
  long rate = atol(argv[2]);
  unsigned sockets = (unsigned)atoi(argv[3]);
  if (rate < 1 || sockets < 1 || sockets > SOCKETS_MAX) return 2;
  static struct target allowed[TARGETS_MAX], forbidden[TARGETS_MAX];
  unsigned allowed_count = 0, forbidden_count = 0;
  for (int i = 4; i + 2 < argc; i += 3) {
    unsigned *count = argv[i + 2][0] == 'a' ? &allowed_count : &forbidden_count;
    struct target *list = argv[i + 2][0] == 'a' ? allowed : forbidden;
    if (*count == TARGETS_MAX) return 2;
    struct target *target = &list[(*count)++];
    target->kind = argv[i + 2][0];
    for (unsigned n = 0; n < sockets; n++) target->sockets[n] = connect_to(argv[i], argv[i + 1]);
  }
  if (allowed_count == 0) return 2;
  printf("ready\n");
  fflush(stdout);
  uint32_t numbers[2] = {0, 0};
  unsigned long refused[2] = {0, 0};
  long per_tick = rate * TICK_NS / 1000000000L;
  if (per_tick < 1) per_tick = 1;
  uint32_t turn = 0;
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  while (!stopped) {
    for (long i = 0; i < per_tick; i++, turn++) {
      if (!send_one(&allowed[turn % allowed_count], sockets, numbers[0]++)) refused[0]++;
      if (forbidden_count == 0 || turn % FORBIDDEN_EVERY != 0) continue;
      struct target *target = &forbidden[turn / FORBIDDEN_EVERY % forbidden_count];
      if (!send_one(target, sockets, numbers[1]++)) refused[1]++;
    }
    struct timespec now;
    next.tv_nsec += TICK_NS;
    if (next.tv_nsec >= 1000000000L) next.tv_sec++, next.tv_nsec -= 1000000000L;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long late = (now.tv_sec - next.tv_sec) * 1000000000L + now.tv_nsec - next.tv_nsec;
    if (late > LATE_TICKS_MAX * TICK_NS) next = now;
    else clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
  }
  printf("{\"sent\":%u,\"forbidden\":%u,\"refused\":%lu,\"forbiddenRefused\":%lu}\n", numbers[0],
         numbers[1], refused[0], refused[1]);
  return 0;
}

static int listen_on(int family, const char *port) {
  int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  int one = 1, octets = BUFFER_OCTETS;
  struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = any4.sin_port};
  if (fd < 0) die("socket");
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &octets, sizeof octets);
  int bound = family == AF_INET ? bind(fd, (struct sockaddr *)&any4, sizeof any4)
                                : bind(fd, (struct sockaddr *)&any6, sizeof any6);
  if (bound < 0) die("bind");
  return fd;
}

static unsigned long received, again, passed;
static uint32_t last;

static void take_all(const struct pollfd *polled, nfds_t count, uint8_t *seen) {
  for (nfds_t i = 0; i < count; i++) {
    struct datagram datagram;
    while (recv(polled[i].fd, &datagram, sizeof datagram, 0) == (ssize_t)sizeof datagram) {
      uint8_t bit = (uint8_t)(1 << (datagram.number & 7));
      if (datagram.kind != 'a') {
        passed++;
      } else if (datagram.number < NUMBERS_MAX) {
        if (seen[datagram.number / 8] & bit) again++;
        else received++;
        seen[datagram.number / 8] |= bit;
        if (datagram.number > last) last = datagram.number;
      }
    }
  }
}

static void print_gaps(const uint8_t *seen) {
  int gaps = 0;
  for (uint32_t i = 0, begin; i < last && gaps < GAPS_MAX; i++) {
    if (seen[i / 8] & (1 << (i & 7))) continue;
    for (begin = i; i < last && !(seen[i / 8] & (1 << (i & 7))); i++) continue;
    printf("%s%u-%u", gaps++ ? " " : "", begin, i - 1);
  }
}

static int run_receive(int argc, char **argv) {
  static struct pollfd polled[2 * TARGETS_MAX];
  nfds_t count = 0;
  for (int i = 2; i < argc && count < 2 * TARGETS_MAX; i++) {
    polled[count++] = (struct pollfd){listen_on(AF_INET, argv[i]), POLLIN, 0};
    polled[count++] = (struct pollfd){listen_on(AF_INET6, argv[i]), POLLIN, 0};
  }
  uint8_t *seen = calloc(NUMBERS_MAX / 8, 1);
  if (count == 0 || seen == NULL) return 2;
  printf("ready\n");
  fflush(stdout);
  while (!stopped) {
    if (poll(polled, count, 100) > 0) take_all(polled, count, seen);
  }
  take_all(polled, count, seen);
  printf("{\"received\":%lu,\"again\":%lu,\"passed\":%lu,\"last\":%u,\"gaps\":\"", received, again, passed, last);
  print_gaps(seen);
  printf("\"}\n");
  return 0;
}

int main(int argc, char **argv) {
  struct sigaction action = {.sa_handler = stop};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  if (argc > 1 && strcmp(argv[1], "send") == 0) return run_send(argc, argv);
  if (argc > 1 && strcmp(argv[1], "receive") == 0) return run_receive(argc, argv);
  fprintf(stderr, "usage: udp-stream send RATE SOCKETS ADDRESS PORT KIND... | receive PORT...\n");
  return 2;
}
