//@ check
#pragma once
#include <stdint.h>
#define $FILE$ <stddef.h>
#define $TEST_STEPS$ \
  { "0: conv", 5 }
#define $ARGUMENTS$ test_$PARAMETER$, $PARAMETER$, scratch
#define $TABLES$ static const uint32_t test_checksums[9]
enum { $STEPS$ = 1, $TRACED$ = 1, $LAST$ = 0, $COUNT$ = 2, $SIZE$ = 3, $SCRATCH_WORDS$ = 4 };
enum { $INPUT_SIZE$ = 3 };
void $NAME$_run(const uint8_t *input, int32_t *output, void *scratch);
int32_t $NAME$_classify(const uint8_t *input, void *scratch);
static const uint8_t test_$PARAMETER$[6];
static const uint8_t test_input[6];
static const int32_t test_classes[2];
typedef int32_t $TYPE$;
#if !$MEASURED$ /* a network without steps traces nothing */
#define MEASURE_PAUSE(step) (void)0
#define MEASURE_RESUME() (void)0
static const struct { const char *name; } test_steps[1];
#endif
//@ TEST_OUTPUTS
static $TYPE$ $PARAMETER$[$SIZE$];
//@ test
/* Made by quantrain: tests $NAME$.c with $COUNT$ samples. Build this file alone: it includes $NAME$.c. */
#include <stdint.h>
#include <stdio.h>

static void trace(int32_t step, const uint8_t *codes, int32_t size);
#define TRACE(step, codes, size) trace(step, codes, size)
static void trace_sums(int32_t step);
#define TRACE_SUMS(step) trace_sums(step)
#include $FILE$

#if $MEASURED$
/* Define these to measure. Between PAUSE and RESUME, the test runs its own code. */
#ifndef MEASURE_START
#define MEASURE_START() (void)0
#define MEASURE_PAUSE(step) (void)(step)
#define MEASURE_RESUME() (void)0
#define MEASURE_STOP(step) (void)(step)
#endif
struct test_step {
  const char *name;
  int64_t multiply_adds;
};
static const struct test_step test_steps[$STEPS$] = {$TEST_STEPS$};
#endif
$TABLES$;
static int32_t scratch[$SCRATCH_WORDS$];
static int32_t sample, traced;
static const char *wrong;

static void trace(int32_t step, const uint8_t *codes, int32_t size) {
#if $ANY_TRACED$
  uint32_t hash = 2166136261u;
  int32_t i;
  MEASURE_PAUSE(test_steps + step);
  for (i = 0; i < size; ++i) hash = (hash ^ codes[i]) * 16777619u;
  if (wrong == 0 && hash != test_checksums[sample * $TRACED$ + traced % $TRACED$])
    wrong = test_steps[step].name;
  ++traced;
  MEASURE_RESUME();
#else
  (void)step;
  (void)codes;
  (void)size;
#endif
}

/* After a step that writes accumulators, which are outputs. */
static void trace_sums(int32_t step) {
#if $MEASURED$
  MEASURE_PAUSE(test_steps + step);
  MEASURE_RESUME();
#else
  (void)step;
#endif
}

int main(void) {
  int32_t i, equal = 0;
  (void)trace_sums; /* not all networks use it */
#if $ANY_TRACED$
#else
  (void)trace;
#endif
  for (sample = 0; sample < $COUNT$; ++sample) {
    wrong = 0;
    traced = 0;
#if $MEASURED$
    MEASURE_START();
    $NAME$_run($ARGUMENTS$);
    MEASURE_STOP(test_steps + $LAST$);
#else
    $NAME$_run($ARGUMENTS$);
#endif
    //@ each COMPARISONS
    for (i = 0; i < $SIZE$; ++i) {
      if (wrong == 0 && $PARAMETER$[i] != test_$PARAMETER$[sample * $SIZE$ + i])
        wrong = "$PARAMETER$";
    }
    //@ end
#if $HAS_CLASSES$
    traced = 0;
    if ($NAME$_classify(test_input + sample * $INPUT_SIZE$, scratch) != test_classes[sample] &&
        wrong == 0)
      wrong = "class";
#endif
    if (wrong == 0) {
      ++equal;
    } else if (sample == equal) {
      printf("sample %d: %s differs\n", (int)sample, wrong);
    }
  }
  printf("%d of $COUNT$ equal\n", (int)equal);
  return equal == $COUNT$ ? 0 : 1;
}
