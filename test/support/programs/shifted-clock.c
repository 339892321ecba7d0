/* A wall clock that a test can set, for one process: LD_PRELOAD puts these functions in front of libc's. Every read of the
 * real-time clock is shifted by the milliseconds in the file SHIFTED_CLOCK at that moment, a little-endian 64-bit number.
 * Clocks that cannot be set are unchanged. The file is mapped, so a read costs no further system call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_shift(void)
{
	const char *path = getenv("SHIFTED_CLOCK");
	int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	if (mapped != MAP_FAILED)
		shift = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int failed;

	if (real_clock_gettime == NULL)
		real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	failed = real_clock_gettime(clock, now);
	if (failed == 0 && shift != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		int64_t ms = *shift;

		now->tv_sec += ms / 1000;
		now->tv_nsec += ms % 1000 * 1000000;
		if (now->tv_nsec >= 1000000000) {
			now->tv_sec++;
			now->tv_nsec -= 1000000000;
		} else if (now->tv_nsec < 0) {
			now->tv_sec--;
			now->tv_nsec += 1000000000;
		}
	}
	return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec exact;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
		return -1;
	now->tv_sec = exact.tv_sec;
	now->tv_usec = exact.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *now)
{
	struct timespec exact;

	if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
		return -1;
	if (now != NULL)
		*now = exact.tv_sec;
	return exact.tv_sec;
}
