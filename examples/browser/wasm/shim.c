/* The exported network as a WebAssembly module. It holds the input, the outputs and the scratch. If
   `show` is set, it passes the codes of the steps to the page. */
#include <stdint.h>

__attribute__((import_module("page"), import_name("trace"))) void trace(int32_t step,
                                                                        const uint8_t *codes,
                                                                        int32_t size);
static int32_t traced;
#define TRACE(step, codes, size) \
  if (traced) trace(step, codes, size)
#include "network.c"

#define EXPORT(function) __attribute__((export_name(#function))) function

static uint8_t pixels[NETWORK_INPUT_SIZE];
static network_output results[NETWORK_OUTPUT_SIZE];
static int32_t outputs[NETWORK_OUTPUT_SIZE];
static int32_t scratch[(NETWORK_SCRATCH_SIZE + 3) / 4 + 1];

uint8_t *EXPORT(input_at)(void) { return pixels; }
int32_t *EXPORT(outputs_at)(void) { return outputs; }

/* Runs the network on the input. If `show` is set, calls trace() with the codes of each step. */
void EXPORT(run)(int32_t show) {
  int32_t i;
  traced = show;
  network_run(pixels, results, scratch);
  for (i = 0; i < NETWORK_OUTPUT_SIZE; ++i) outputs[i] = (int32_t)results[i];
}
