/* A preload that gives a server another wall clock: real time and
 * TESTREDIS_CLOCK_NS nanoseconds. It calls the kernel itself and takes no
 * memory, so it works beside any allocator. Monotonic clocks stay as they are. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long offset(void) {
  static volatile int known;
  static volatile long long ns;
  if (!known) {
    const char *text = getenv("TESTREDIS_CLOCK_NS");
    ns = text ? atoll(text) : 0;
    known = 1;
  }
  return ns;
}

int clock_gettime(clockid_t id, struct timespec *t) {
  int r = (int)syscall(SYS_clock_gettime, id, t);
  if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    long long n = t->tv_sec * 1000000000LL + t->tv_nsec + offset();
    t->tv_sec = n / 1000000000LL;
    t->tv_nsec = n % 1000000000LL;
  }
  return r;
}

int gettimeofday(struct timeval *restrict v, void *restrict zone) {
  struct timespec t;
  int r = clock_gettime(CLOCK_REALTIME, &t);
  (void)zone;
  v->tv_sec = t.tv_sec;
  v->tv_usec = t.tv_nsec / 1000;
  return r;
}

time_t time(time_t *out) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  if (out)
    *out = t.tv_sec;
  return t.tv_sec;
}
