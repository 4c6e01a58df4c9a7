/* The open loop as hand-written single-thread C: uniform retrieval without repetition, success with the mean utility of
 * the set, two counters a memory. What an engineer would write instead of mwjax.
 *
 *     cc -O3 -march=native -ffast-math -DN=100 -DK=8 -o open_loop open_loop.c && ./open_loop LIVES EPISODES
 *
 * Prints nanoseconds per life-episode and the mean worth, which keeps the work alive. */
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

/* Floyd's subset draw. */
static inline void retrieve(int *set) {
  for (int i = 0; i < K; i++) {
    const int last = N - K + i;
    int memory = (int)(((uint64_t)word() * (uint64_t)(last + 1)) >> 32);
    for (int j = 0; j < i; j++)
      if (set[j] == memory) {
        memory = last;
        break;
      }
    set[i] = memory;
  }
}

static double live(long episodes) {
  static float utility[N], hits[N], shown[N];
  int set[K];
  for (int m = 0; m < N; m++) utility[m] = unit(), hits[m] = 0, shown[m] = 0;
  for (long t = 0; t < episodes; t++) {
    float total = 0;
    retrieve(set);
    for (int i = 0; i < K; i++) total += utility[set[i]];
    const float success = unit() * K < total;
    for (int i = 0; i < K; i++) hits[set[i]] += success, shown[set[i]] += 1;
  }
  double worth = 0;
  for (int m = 0; m < N; m++) worth += shown[m] ? hits[m] / shown[m] : 0.5;
  return worth / N;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: open_loop LIVES EPISODES\n"), 2;
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
