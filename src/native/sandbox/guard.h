/* `sandbox guard COMMAND...` runs a helper (the uplink) for as long as the gate lives, whatever ends the gate. Its standard input
 * is a pipe whose other end only the gate holds. It exits with the helper's status. */
#ifndef NAMEGATE_SANDBOX_GUARD_H
#define NAMEGATE_SANDBOX_GUARD_H

#include <sys/signalfd.h>

#include "sandbox.h"

static int run_guard(char **command)
{
	sigset_t watched, before;
	int status;
	sigfillset(&watched);
	sigprocmask(SIG_SETMASK, &watched, &before);
	int children = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	pid_t child = children < 0 ? -1 : fork();
	if (child < 0)
		return 1;
	if (child == 0) {
		int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		sigprocmask(SIG_SETMASK, &before, NULL);
		if (nothing < 0 || dup2(nothing, 0) < 0)
			_exit(126);
		execvp(command[0], command);
		_exit(errno == ENOENT ? 127 : 126);
	}
	struct pollfd ready[2] = { { 0, POLLIN, 0 }, { children, POLLIN, 0 } };
	for (;;) {
		struct signalfd_siginfo seen;
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (poll(ready, 2, -1) < 0 && errno != EINTR)
			break;
		while (read(children, &seen, sizeof(seen)) == sizeof(seen))
			;
		if (ready[0].revents) {
			kill(child, SIGTERM);
			if (usleep(50000), waitpid(child, &status, WNOHANG) != child)
				kill(child, SIGKILL);
			return 0;
		}
	}
	kill(child, SIGKILL);
	return 1;
}

#endif
