/* images FILE [COUNT]: runs an exported network on images and compares its results with the engine's. It compares a
   checksum of the codes of each traced step, the output and, for every tenth image, the class. `c99_programs expected`
   writes FILE; the numbers in it are little-endian. The network is called `network`; its folder is on the include path.
   Prints "N of N equal". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void trace(const uint8_t *codes, int32_t size);
#define TRACE(step, codes, size) trace(codes, size)
#include "network.c"

enum { kMostTraced = 1000 };

static uint32_t checksums[kMostTraced];
static int32_t traced;

static void trace(const uint8_t *codes, int32_t size) {
  uint32_t hash = 2166136261u;
  int32_t i;
  for (i = 0; i < size; ++i) hash = (hash ^ codes[i]) * 16777619u;
  checksums[traced++] = hash;
}

static void fill(void *to, size_t bytes, FILE *from) {
  if (fread(to, 1, bytes, from) == bytes) return;
  fprintf(stderr, "images: the file is too short\n");
  exit(2);
}

int main(int argc, char **argv) {
  static uint8_t input[NETWORK_INPUT_SIZE];
  static network_output output[NETWORK_OUTPUT_SIZE];
  static int32_t wanted[NETWORK_OUTPUT_SIZE], scratch[NETWORK_SCRATCH_SIZE / 4 + 1];
  static uint32_t wanted_checksums[kMostTraced];
  int32_t head[2], count, equal = 0, i, k;
  FILE *file;
  if (argc < 2 || (file = fopen(argv[1], "rb")) == NULL) {
    fprintf(stderr, "usage: images FILE [COUNT]; `c99_programs expected` writes FILE\n");
    return 2;
  }
  fill(head, sizeof head, file);
  count = argc > 2 && atoi(argv[2]) < head[0] ? atoi(argv[2]) : head[0];
  if (head[1] > kMostTraced) return 2;
  for (i = 0; i < count; ++i) {
    int32_t class_wanted, different = 0;
    fill(input, sizeof input, file);
    fill(wanted_checksums, (size_t)head[1] * 4, file);
    fill(wanted, sizeof wanted, file);
    fill(&class_wanted, sizeof class_wanted, file);
    traced = 0;
    network_run(input, output, scratch);
    different += traced != head[1];
    for (k = 0; k < head[1]; ++k) different += checksums[k] != wanted_checksums[k];
    for (k = 0; k < NETWORK_OUTPUT_SIZE; ++k) different += output[k] != wanted[k];
    traced = 0;
    if (i % 10 == 0) different += network_classify(input, scratch) != class_wanted; /* runs the network again */
    equal += different == 0;
  }
  printf("%d of %d equal\n", (int)equal, (int)count);
  fclose(file);
  return count > 0 && equal == count ? 0 : 1;
}
