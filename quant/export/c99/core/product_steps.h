//@ check
#pragma once
#include "products.h"
#define $EACH_PIXEL$ \
  i = 0;             \
  i < 9;             \
  i += 2
#define $NEXT$ (i + 1)
#define $PATCH_ROWS$ (void)from
enum { $OW$ = 3, $STRIDE_H$ = 2, $STRIDE_W$ = 1, $PAD_H$ = 1, $PAD_W$ = 0, $PIXELS$ = 9 };
enum { $DILATION_H$ = 1, $DILATION_W$ = 2 };
enum { $HEIGHT$ = 6, $WIDTH$ = 4, $CHANNELS$ = 5, $BLANK$ = 7, $OUTPUTS$ = 4, $DOWN$ = 8 };
enum { $LAST_TOP$ = 4, $LAST_LEFT$ = 3, $WINDOW_HEIGHT$ = 2, $WINDOW_WIDTH$ = 2 };
enum { $TO$ = 4, $FROM$ = 6, $BYTES$ = 2, $COLUMNS$ = 36, $COUNT$ = 18, $LENGTH$ = 20 };
enum { $GROUPS$ = 2, $GROUP_CHANNELS$ = 2, $GROUP_OUTPUTS$ = 2, $PATCH_BYTES$ = 40 };
static const struct product product$ID$[1];
void $FUNCTION$(const struct product *p, const uint8_t *x0, const uint8_t *x1, uint32_t *columns,
                $OUTPUT$ *y0, $OUTPUT$ *y1);
//@ patch_inside
static void patch$ID$(const uint8_t *x, int32_t top, int32_t left, uint8_t *patch) {
  const uint8_t *from = x + (top * $WIDTH$ + left) * $CHANNELS$;
  $PATCH_ROWS$;
}
//@ patch
static void patch$ID$(const uint8_t *x, int32_t top, int32_t left, uint8_t *patch) {
  int32_t i, j;
#if $FITS$
  if (top >= 0 && top <= $LAST_TOP$ && left >= 0 && left <= $LAST_LEFT$) {
    const uint8_t *from = x + (top * $WIDTH$ + left) * $CHANNELS$;
    //@ each PATCH_ROWS
    memcpy(patch + $TO$, from + $FROM$, $BYTES$);
    //@ end
    return;
  }
#endif
  for (i = top; i < top + $WINDOW_HEIGHT$; i += $DILATION_H$) {
    for (j = left; j < left + $WINDOW_WIDTH$; j += $DILATION_W$, patch += $GROUP_CHANNELS$) {
#if $PADDED$
      if (i >= 0 && i < $HEIGHT$ && j >= 0 && j < $WIDTH$)
        memcpy(patch, x + (i * $WIDTH$ + j) * $CHANNELS$, $GROUP_CHANNELS$);
      else
        memset(patch, $BLANK$, $GROUP_CHANNELS$);
#else
      memcpy(patch, x + (i * $WIDTH$ + j) * $CHANNELS$, $GROUP_CHANNELS$);
#endif
    }
  }
}
//@ check
#undef patch$ID$
void patch$ID$(const uint8_t *x, int32_t top, int32_t left, uint8_t *patch);
//@ product_pairs
static void step$ID$(const uint8_t *x, $OUTPUT$ *y, void *local) {
  uint32_t *const columns = (uint32_t *)local;
#if $PATCHES$
  uint8_t *const patch = (uint8_t *)local + $COLUMNS$;
#endif
  int32_t i;
#if $GROUPED$
  int32_t g;
#endif
#if $PATCHES$
#if $ROUNDED_UP$
  memset(patch, 0, $PATCH_BYTES$);
#endif
#endif
  for ($EACH_PIXEL$) {
#if $ODD$
    const int32_t next = i + 1 < $PIXELS$ ? i + 1 : i;
#endif
#if $PATCHES$
#if $WINDOWS$
#if $GROUPED$
    for (g = 0; g < $GROUPS$; ++g) {
      {
        const int32_t top = i / $OW$ * $STRIDE_H$ - $PAD_H$, left = i % $OW$ * $STRIDE_W$ - $PAD_W$;
        patch$ID$(x + g * $GROUP_CHANNELS$, top, left, patch);
      }
      {
        const int32_t top = $NEXT$ / $OW$ * $STRIDE_H$ - $PAD_H$,
                      left = $NEXT$ % $OW$ * $STRIDE_W$ - $PAD_W$;
        patch$ID$(x + g * $GROUP_CHANNELS$, top, left, patch + $LENGTH$);
      }
      $FUNCTION$(product$ID$ + g, patch, patch + $LENGTH$, columns,
                 y + i * $OUTPUTS$ + g * $GROUP_OUTPUTS$,
                 y + $NEXT$ * $OUTPUTS$ + g * $GROUP_OUTPUTS$);
    }
#else
    {
      const int32_t top = i / $OW$ * $STRIDE_H$ - $PAD_H$, left = i % $OW$ * $STRIDE_W$ - $PAD_W$;
      patch$ID$(x, top, left, patch);
    }
    {
      const int32_t top = $NEXT$ / $OW$ * $STRIDE_H$ - $PAD_H$,
                    left = $NEXT$ % $OW$ * $STRIDE_W$ - $PAD_W$;
      patch$ID$(x, top, left, patch + $LENGTH$);
    }
    $FUNCTION$(product$ID$, patch, patch + $LENGTH$, columns, y + i * $OUTPUTS$,
               y + $NEXT$ * $OUTPUTS$);
#endif
#else
#if $UNIT$
    memcpy(patch, x + i * $CHANNELS$, $COUNT$);
    memcpy(patch + $LENGTH$, x + $NEXT$ * $CHANNELS$, $COUNT$);
#else
    memcpy(patch, x + (i / $OW$ * $DOWN$ + i % $OW$ * $STRIDE_W$) * $CHANNELS$, $COUNT$);
    memcpy(patch + $LENGTH$, x + ($NEXT$ / $OW$ * $DOWN$ + $NEXT$ % $OW$ * $STRIDE_W$) * $CHANNELS$,
           $COUNT$);
#endif
    $FUNCTION$(product$ID$, patch, patch + $LENGTH$, columns, y + i * $OUTPUTS$,
               y + $NEXT$ * $OUTPUTS$);
#endif
#else
#if $UNIT$
    $FUNCTION$(product$ID$, x + i * $CHANNELS$, x + $NEXT$ * $CHANNELS$, columns, y + i * $OUTPUTS$,
               y + $NEXT$ * $OUTPUTS$);
#else
    $FUNCTION$(product$ID$, x + (i / $OW$ * $DOWN$ + i % $OW$ * $STRIDE_W$) * $CHANNELS$,
               x + ($NEXT$ / $OW$ * $DOWN$ + $NEXT$ % $OW$ * $STRIDE_W$) * $CHANNELS$, columns,
               y + i * $OUTPUTS$, y + $NEXT$ * $OUTPUTS$);
#endif
#endif
  }
}
//@ check
#undef $FUNCTION$
#define $FUNCTION$ product_of_pixel
void $FUNCTION$(const struct product *p, const uint8_t *x, uint32_t *columns, $OUTPUT$ *y);
//@ product_pixel
static void step$ID$(const uint8_t *x, $OUTPUT$ *y, void *local) {
  uint32_t *const columns = (uint32_t *)local;
#if $GROUPED$
  int32_t g;
#endif
#if $PATCHES$
  uint8_t *const patch = (uint8_t *)local + $COLUMNS$;
#if $ROUNDED_UP$
  memset(patch, 0, $PATCH_BYTES$);
#endif
#if $WINDOWS$
#if $GROUPED$
  for (g = 0; g < $GROUPS$; ++g) {
    patch$ID$(x + g * $GROUP_CHANNELS$, -$PAD_H$, -$PAD_W$, patch);
    $FUNCTION$(product$ID$ + g, patch, columns, y + g * $GROUP_OUTPUTS$);
  }
#else
  patch$ID$(x, -$PAD_H$, -$PAD_W$, patch);
  $FUNCTION$(product$ID$, patch, columns, y);
#endif
#else
  memcpy(patch, x, $COUNT$);
  $FUNCTION$(product$ID$, patch, columns, y);
#endif
#else
  $FUNCTION$(product$ID$, x, columns, y);
#endif
}
