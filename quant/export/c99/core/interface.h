//@ check
#pragma once
#include <stdint.h>
#include <string.h>
#define $PARAMETERS$ const uint8_t *input, output_type *output, void *scratch
#define $ARGUMENTS$ input, output, scratch
#define $OUTPUT$ output
#define $FROM$ input
#define $FILE$ <stddef.h>
#define $SECTION$ ".rodata.tables"
enum { $ANY_SHIFT$ = 1, $INDEX$ = 2, $SIZE$ = 4, $SCRATCH_BYTES$ = 20, $ZERO$ = 3 };
#define $SCALE$ 0.5f
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
       input[0] = 255;  // and so on: the codes of a sample, see below
       $NAME$_run(input, output, scratch);
       return output[0] > 0;
     }

#endif
   Outputs are the same integers on every machine. The scratch keeps nothing from one call to the next.
   */
#ifndef $MACRO$_H
#define $MACRO$_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

//@ each INPUTS
/* Input $PARAMETER$: $SHAPE$, one byte each, row-major.
   real = $MACRO$_SCALE * (byte - $MACRO$_ZERO_POINT)
   byte = real / $MACRO$_SCALE, rounded to the nearest integer, ties to the even one, plus $MACRO$_ZERO_POINT,
          not below $LOW$, not above $HIGH$$FEATURES$ */
#define $MACRO$_SIZE $SIZE$
#define $MACRO$_SCALE $SCALE$
#define $MACRO$_ZERO_POINT $ZERO$

//@ end
//@ each OUTPUTS
/* Output $PARAMETER$: $SHAPE$, row-major.
   $REAL$ */
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
#if $HAS_CLASSES$

/* Runs one sample and returns the index of its largest output, the lowest if several are equal. */
int32_t $NAME$_classify(const uint8_t *input, void *scratch);
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

//@ check
void step$ID$(const uint8_t *input, output_type *output, void *local);
//@ run
void $NAME$_run($PARAMETERS$) {
#if $USES_MEMORY$
  uint8_t *const memory = (uint8_t *)scratch;
#else
  (void)scratch;
#endif
  //@ each CALLS
  step$ID$($ARGUMENTS$);
#if $IS_TRACED$
  TRACE($INDEX$, $OUTPUT$, $SIZE$);
#endif
  //@ end
  //@ each COPIES
  memcpy($OUTPUT$, $FROM$, $SIZE$ * sizeof *$OUTPUT$);
  //@ end
}
//@ classify

int32_t $NAME$_classify(const uint8_t *input, void *scratch) {
  $TYPE$ output[$SIZE$];
  int32_t i, best = 0;
  $NAME$_run(input, output, scratch);
  for (i = 1; i < $SIZE$; ++i) best = output[i] > output[best] ? i : best;
  return best;
}
