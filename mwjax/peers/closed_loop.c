/* The closed loop as hand-written single-thread C: retrieval by softmax of worth, successive draws without repetition
 * from a sum tree with 16 children a node, whose sums are recomputed, never differenced. What an engineer would write.
 *
 *     cc -O3 -march=native -ffast-math -DN=100 -DK=8 -o closed_loop closed_loop.c -lm && ./closed_loop LIVES EPISODES
 *
 * Temperature 0.1. */
#include <math.h>

#include "peer.h"

#define CHILDREN 16
#define PARENTS(n) (((n) + CHILDREN - 1) / CHILDREN)
#define TEMPERATURE 0.1f

enum { SIZE1 = PARENTS(N), SIZE2 = PARENTS(SIZE1), SIZE3 = PARENTS(SIZE2), LEVELS = SIZE1 <= CHILDREN ? 2 : SIZE2 <= CHILDREN ? 3 : 4 };
static float weights[SIZE1 * CHILDREN], sums1[SIZE2 * CHILDREN], sums2[SIZE3 * CHILDREN], sums3[CHILDREN];
static float *const tree[] = {weights, sums1, sums2, sums3};

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
