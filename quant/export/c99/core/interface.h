//@ check
#pragma once
#include <stdint.h>
#include <string.h>
#define $PARAMETERS$ const uint8_t *input, output_type *output, void *scratch
#define $ARGUMENTS$ input, output, scratch
#define $INPUT$ input
#define $OUTPUT$ output
#define $FROM$ input
#define $FILE$ <stddef.h>
#define $SECTION$ ".rodata.tables"
#define $MACRO$_FLOATS
enum { $ANY_SHIFT$ = 1, $INDEX$ = 2, $SIZE$ = 4, $SCRATCH_BYTES$ = 20, $ZERO$ = 3 };
enum { $LOW$ = 0, $HIGH$ = 255, $COUNT$ = 2, $CLASSES$ = 3 };
#define $SCALE$ 0.5f
#define $SCALE_TABLES$ extern float no_table
static const float $NAME$_$PARAMETER$_offset[2], $NAME$_$PARAMETER$_scale[2];
typedef int32_t output_type;
typedef int32_t $ELEMENT$;
//@ header
/* $NAME$: an integer network, made by quantrain $VERSION$.
   Hash of the network: $HASH$
   Steps: $STEPS$, multiply-adds: $MULTIPLY_ADDS$
   Bytes: tables $TABLE_BYTES$, scratch $SCRATCH_BYTES$

#if $SIMPLE$
     #include "$NAME$.h"

     static int32_t scratch[$MACRO$_SCRATCH_SIZE / 4 + 1];
     static uint8_t input[$MACRO$_INPUT_SIZE];
     static $TYPE$ output[$MACRO$_OUTPUT_SIZE];

     int main(void) {
       input[0] = 1;  // and so on: the codes of a sample, see below
       $NAME$_run(input, output, scratch);
       return output[0] > 0;
     }

#endif
   Outputs are the same integers on every machine. The scratch keeps nothing from one call to the next.
   */
#ifndef $MACRO$_H
#define $MACRO$_H

#include <stdint.h>
#ifdef $MACRO$_FLOATS
#include <string.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

//@ each INPUTS
/* Input $PARAMETER$: $SHAPE$, one byte each, row-major.
   real = $MACRO$_SCALE * (byte - $MACRO$_ZERO_POINT)
   byte = real / $MACRO$_SCALE, rounded to the nearest integer, ties to the even one, plus $MACRO$_ZERO_POINT,
          not below $LOW$, not above $HIGH$
#if $FEATURES$
   where real = (raw - $NAME$_$PARAMETER$_offset[f]) / $NAME$_$PARAMETER$_scale[f] in float for feature f, the index
   along the last axis.
#endif
   $NAME$_encode_$PARAMETER$ computes bytes from raw values. */
#define $MACRO$_SIZE $SIZE$
#define $MACRO$_SCALE $SCALE$
#define $MACRO$_ZERO_POINT $ZERO$
#if $FEATURES$
#define $MACRO$_FEATURES $COUNT$
#endif

//@ end
//@ each OUTPUTS
/* Output $PARAMETER$: $SHAPE$, row-major.
   $REAL$
   $NAME$_decode_$PARAMETER$ computes real values. */
#define $MACRO$_SIZE $SIZE$
#if $ONE_SCALE$
#define $MACRO$_SCALE $SCALE$
#endif
#if $CODES$
#define $MACRO$_ZERO_POINT $ZERO$
#endif
typedef $ELEMENT$ $TYPE$;

//@ end
/* Bytes of scratch, which must be aligned like an int32_t. */
#define $MACRO$_SCRATCH_SIZE $SCRATCH_BYTES$

/* Runs one sample. */
void $NAME$_run($PARAMETERS$);

//@ each CLASS_FUNCTIONS
/* The class of a row of $CLASSES$ integers of $PARAMETER$: the index of the largest real number, the lowest if several
   are equal. */
int32_t $CLASS$(const $TYPE$ *row);

//@ end
#if $HAS_CLASSES$
/* Runs one sample and returns its class. */
int32_t $NAME$_classify(const uint8_t *input, void *scratch);

#endif
/* The only floating point: define $MACRO$_FLOATS before you include this header, to get functions that convert raw
   values to the library's codes, and outputs to real values. */
#ifdef $MACRO$_FLOATS
/* Looks at the bits, so that -ffast-math changes nothing. */
static inline int32_t $NAME$_is_finite(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (bits >> 23 & 255) != 255;
}
/* The code of a value that is given in steps from real 0. Adds 1 to *outside if the code is clamped. */
static inline uint8_t $NAME$_code(float steps, int32_t zero_point, int32_t low, int32_t high,
                                  int32_t *outside) {
  int32_t code = low - 1; /* also of NaN */
  if (steps > 1024.0f) {
    code = high + 1;
  } else if (steps > -1024.0f) {
    const int32_t whole = (int32_t)steps;
    const float rest = steps - (float)whole;
    code = whole + zero_point;
    if (rest > 0.5f || (rest == 0.5f && whole % 2 != 0)) ++code;
    if (rest < -0.5f || (rest == -0.5f && whole % 2 != 0)) --code;
  }
  if (code < low || code > high) ++*outside;
  return (uint8_t)(code < low ? low : code > high ? high : code);
}
//@ each ENCODERS

#if $FEATURES$
$SCALE_TABLES$;

#endif
/* Codes of one sample. Returns how many values lie outside of the codes' range; these get the nearest code. Returns -1
   if a value is NaN or infinite, which the library refuses: do not run such a sample, its codes mean nothing. */
static inline int32_t $NAME$_encode_$PARAMETER$(const float *raw, uint8_t *codes) {
  int32_t i, outside = 0, finite = 1;
  for (i = 0; i < $MACRO$_SIZE; ++i) {
#if $FEATURES$
    const int32_t f = i % $MACRO$_FEATURES;
    const float shifted = raw[i] - $NAME$_$PARAMETER$_offset[f];
    const float real = shifted / $NAME$_$PARAMETER$_scale[f];
#else
    const float real = raw[i];
#endif
    finite &= $NAME$_is_finite(real);
    codes[i] = $NAME$_code(real / $MACRO$_SCALE, $MACRO$_ZERO_POINT, $LOW$, $HIGH$, &outside);
  }
  return finite ? outside : -1;
}
//@ end
//@ each DECODERS

#if $ONE_SCALE$
#else
$SCALE_TABLES$;

#endif
/* The real values of one sample. */
static inline void $NAME$_decode_$PARAMETER$(const $TYPE$ *output, float *real) {
  int32_t i;
#if $CODES$
  for (i = 0; i < $MACRO$_SIZE; ++i)
    real[i] = (float)((double)$MACRO$_SCALE * (output[i] - $MACRO$_ZERO_POINT));
#else
#if $ONE_SCALE$
  for (i = 0; i < $MACRO$_SIZE; ++i) real[i] = (float)($MACRO$_SCALE * output[i]);
#else
  for (i = 0; i < $MACRO$_SIZE; ++i)
    real[i] = (float)($NAME$_$PARAMETER$_scale[i % $COUNT$] * output[i]);
#endif
#endif
}
//@ end
#endif

#ifdef __cplusplus
}
#endif

#endif
//@ source
/* Made by quantrain $VERSION$. $NAME$.h describes what this file computes. */
#include $FILE$

#include <stddef.h>
#include <string.h>

#if $HAS_SECTION$
#if defined(__GNUC__)
#define TABLE __attribute__((section($SECTION$)))
#else
#define TABLE
#endif
#else
#define TABLE
#endif
#define ANY_SHIFT $ANY_SHIFT$
#ifndef TRACE
#define TRACE(step, codes, size) (void)0
#endif
#ifndef TRACE_SUMS
#define TRACE_SUMS(step) (void)0
#endif

//@ check
void step$ID$(const uint8_t *input, output_type *output, void *local);
//@ run
void $NAME$_run($PARAMETERS$) {
#if $USES_MEMORY$
  uint8_t *const memory = (uint8_t *)scratch;
#else
  (void)scratch;
#endif
  //@ each UNREAD
  (void)$INPUT$;
  //@ end
  //@ each CALLS
  step$ID$($ARGUMENTS$);
#if $IS_TRACED$
  TRACE($INDEX$, $OUTPUT$, $SIZE$);
#else
  TRACE_SUMS($INDEX$);
#endif
  //@ end
  //@ each COPIES
  memcpy($OUTPUT$, $FROM$, $SIZE$ * sizeof *$OUTPUT$);
  //@ end
}
//@ check
static const int32_t $FACTORS$[3];
//@ class

int32_t $CLASS$(const $TYPE$ *row) {
  int32_t c, best = 0;
#if $ONE_SCALE$
  for (c = 1; c < $CLASSES$; ++c) best = row[c] > row[best] ? c : best;
#else
  int64_t most = (int64_t)row[0] * $FACTORS$[0];
  for (c = 1; c < $CLASSES$; ++c) {
    const int64_t next = (int64_t)row[c] * $FACTORS$[c];
    if (next > most) {
      most = next;
      best = c;
    }
  }
#endif
  return best;
}
//@ classify

int32_t $NAME$_classify(const uint8_t *input, void *scratch) {
  $TYPE$ output[$SIZE$];
  $NAME$_run(input, output, scratch);
  return $CLASS$(output);
}
