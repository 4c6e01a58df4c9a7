/* The open loop as hand-written single-thread C: uniform retrieval without repetition, success with the mean utility of
 * the set, two counters a memory. What an engineer would write instead of mwjax.
 *
 *     cc -O3 -march=native -ffast-math -DN=100 -DK=8 -o open_loop open_loop.c && ./open_loop LIVES EPISODES */
#include "peer.h"

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
