/* Like device.cpp, but in C for a device without C++. quantize.cpp wrote shapes.h and shapes.c. */
#include <stdio.h>

#include "shapes.h"

static int32_t scratch[SHAPES_SCRATCH_SIZE / 4 + 1];
static uint8_t input[SHAPES_INPUT_SIZE];

int main(void) {
  FILE *file = fopen("image", "rb");
  if (file == NULL || fread(input, 1, sizeof input, file) != sizeof input) return 1;
  fclose(file);
  printf("class %d\n", (int)shapes_classify(input, scratch));
  return 0;
}
