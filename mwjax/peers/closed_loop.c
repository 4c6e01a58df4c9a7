/* The closed loop as hand-written single-thread C: retrieval by softmax of worth, successive draws without repetition
 * from a sum tree with 16 children a node, whose sums are recomputed, never differenced. What an engineer would write.
 *
 *     cc -O3 -march=native -ffast-math -DN=100 -DK=8 -o closed_loop closed_loop.c -lm && ./closed_loop LIVES EPISODES
 *
 * Temperature 0.1. Prints nanoseconds per life-episode and the mean worth, which keeps the work alive. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
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
#define CHILDREN 16
#define PARENTS(n) (((n) + CHILDREN - 1) / CHILDREN)
#define TEMPERATURE 0.1f

enum { SIZE1 = PARENTS(N), SIZE2 = PARENTS(SIZE1), SIZE3 = PARENTS(SIZE2), LEVELS = SIZE1 <= CHILDREN ? 2 : SIZE2 <= CHILDREN ? 3 : 4 };
static float weights[SIZE1 * CHILDREN], sums1[SIZE2 * CHILDREN], sums2[SIZE3 * CHILDREN], sums3[CHILDREN];
static float *const tree[] = {weights, sums1, sums2, sums3};

/* xoshiro256** 1.0 (Blackman and Vigna 2018). */
static uint64_t state[4] = {0x9E3779B97F4A7C15u, 0xBF58476D1CE4E5B9u, 0x94D049BB133111EBu, 0x2545F4914F6CDD1Du};

static inline uint64_t rotate(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

static inline float unit(void) {
  const uint64_t result = rotate(state[1] * 5, 7) * 9, shifted = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= shifted;
  state[3] = rotate(state[3], 45);
  return (float)(result >> 40) * (1.0f / 16777216.0f);
}

static inline float sum(const float *children) {
  float total = 0;
  for (int i = 0; i < CHILDREN; i++) total += children[i];
  return total;
}

static inline void weigh(int memory, float weight) {
  weights[memory] = weight;
  for (int level = 0, node = memory / CHILDREN; level + 1 < LEVELS; level++, node /= CHILDREN)
    tree[level + 1][node] = sum(tree[level] + node * CHILDREN);
}

static inline int draw(void) {
  float x = unit() * sum(tree[LEVELS - 1]);
  int node = 0;
  for (int level = LEVELS - 1; level >= 0; level--) {
    const float *children = tree[level] + node * CHILDREN;
    int child = 0;
    while (child < CHILDREN - 1 && x >= children[child]) x -= children[child++];
    node = node * CHILDREN + child;
  }
  return node;
}

static double live(long episodes) {
  static float utility[N], hits[N], shown[N];
  int set[K];
  for (int m = 0; m < N; m++) utility[m] = unit(), hits[m] = shown[m] = 0, weigh(m, expf(0.5f / TEMPERATURE));
  for (long t = 0; t < episodes; t++) {
    float total = 0;
    for (int i = 0; i < K; i++) {
      do set[i] = draw();
      while (set[i] >= N || weights[set[i]] == 0);
      weigh(set[i], 0);
    }
    for (int i = 0; i < K; i++) total += utility[set[i]];
    const float success = unit() * K < total;
    for (int i = 0; i < K; i++) {
      const int m = set[i];
      hits[m] += success, shown[m] += 1;
      weigh(m, expf(hits[m] / shown[m] / TEMPERATURE));
    }
  }
  double worth = 0;
  for (int m = 0; m < N; m++) worth += shown[m] ? hits[m] / shown[m] : 0.5;
  return worth / N;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: closed_loop LIVES EPISODES\n"), 2;
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
