/* What both loops share: sizes, random numbers, and a main that times `live` and prints nanoseconds per life-episode and
 * the mean worth, which keeps the work alive. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef N
#define N 100
#endif
#ifndef K
#define K 8
#endif

/* xoshiro256** 1.0 (Blackman and Vigna 2018). */
static uint64_t state[4] = {0x9E3779B97F4A7C15u, 0xBF58476D1CE4E5B9u, 0x94D049BB133111EBu, 0x2545F4914F6CDD1Du};

static inline uint64_t rotate(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

static inline uint32_t word(void) {
  const uint64_t result = rotate(state[1] * 5, 7) * 9, shifted = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= shifted;
  state[3] = rotate(state[3], 45);
  return (uint32_t)(result >> 32);
}

static inline float unit(void) { return (float)(word() >> 8) * (1.0f / 16777216.0f); }

static double live(long episodes);

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: LIVES EPISODES\n"), 2;
  const long lives = atol(argv[1]), episodes = atol(argv[2]);
  struct timespec begin, end;
  double worth = 0;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (long i = 0; i < lives; i++) worth += live(episodes);
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
  printf("%.3f %.5f\n", ns / ((double)lives * (double)episodes), worth / (double)lives);
  return 0;
}
