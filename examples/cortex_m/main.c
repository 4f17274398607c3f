/* Runs the test of an exported network on a board: compares its results with the library's integers, and measures what
   each step costs. Built by `run`, which defines TEST, CODE_BYTES and TABLE_BYTES. */
#include <string.h>

#include "board.h"

struct test_step;
static void measure_start(void);
static void measure_pause(const struct test_step *step);
static void measure_resume(void);
#define MEASURE_START() measure_start()
#define MEASURE_PAUSE(step) measure_pause(step)
#define MEASURE_RESUME() measure_resume()
#define MEASURE_STOP(step) measure_stop(step)
static void measure_stop(const struct test_step *step);

/* Replaces printf in the test, whose formats contain only %d and %s. */
static int print(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define printf print
#define main run_test
#include TEST
#undef main
#undef printf

#include <stdarg.h>

enum { STEPS = sizeof test_steps / sizeof test_steps[0] };

static uint64_t cost[STEPS], began;
static uint32_t samples, stack;
static int running; /* 1 in NAME_run; 0 while the test calls NAME_classify, which is not measured */

static void measure_resume(void) { began = board_count(); }

static void measure_pause(const struct test_step *step) {
  const uint64_t now = board_count();
  if (running) cost[step - test_steps] += now - began;
}

static void measure_start(void) {
  running = 1;
  ++samples;
  if (samples == 1) stack = board_stack_used();
  measure_resume();
}

static void measure_stop(const struct test_step *step) {
  measure_pause(step);
  running = 0;
  if (samples == 1) stack = board_stack_used() - stack;
}

/* A decimal with `point` digits after the point, right-aligned. */
static void print_number(uint64_t value, int width, int point) {
  char text[32];
  char *at = text + sizeof text - 1;
  int digits = 0;
  *at = 0;
  do {
    if (digits == point && digits > 0) *--at = '.';
    *--at = (char)('0' + value % 10);
    value /= 10;
    ++digits;
  } while (value > 0 || digits <= point);
  while (text + sizeof text - 1 - at < width) *--at = ' ';
  board_print(at);
}

static void print_text(const char *text, size_t width) {
  size_t n;
  board_print(text);
  for (n = strlen(text); n < width; ++n) board_print(" ");
}

static int print(const char *format, ...) {
  char letter[2] = {0, 0};
  va_list values;
  va_start(values, format);
  for (; *format != 0; ++format) {
    letter[0] = *format;
    if (*format != '%') {
      board_print(letter);
    } else if (*++format == 's') {
      board_print(va_arg(values, const char *));
    } else {
      const int value = va_arg(values, int);
      if (value < 0) board_print("-");
      print_number(value < 0 ? 0u - (unsigned)value : (unsigned)value, 0, 0);
    }
  }
  va_end(values);
  return 0;
}

static void print_line(const char *name, uint64_t multiply_adds, uint64_t count) {
  print_text(name, 28);
  print_number(multiply_adds, 14, 0);
  print_number(count, 14, 0);
  if (multiply_adds > 0) print_number((count * 100 + multiply_adds / 2) / multiply_adds, 14, 2);
  board_print("\n");
}

int main(void) {
  uint64_t all = 0, multiply_adds = 0;
  int i, status;
  board_start_count();
  status = run_test();
  print_text("step", 28);
  board_print(" multiply-adds  ");
  board_print(board_unit);
  board_print("    per MAC\n");
  for (i = 0; i < STEPS; ++i) {
    const uint64_t count = cost[i] / samples;
    print_line(test_steps[i].name, (uint64_t)test_steps[i].multiply_adds, count);
    multiply_adds += (uint64_t)test_steps[i].multiply_adds;
    all += count;
  }
  print_line("all", multiply_adds, all);
  board_print("bytes: tables ");
  print_number(TABLE_BYTES, 0, 0);
  board_print(", code ");
  print_number(CODE_BYTES, 0, 0);
  board_print(", RAM ");
  print_number(sizeof scratch + stack, 0, 0);
  board_print(" (scratch ");
  print_number(sizeof scratch, 0, 0);
  board_print(", stack ");
  print_number(stack, 0, 0);
  board_print(")\n");
  return status;
}
