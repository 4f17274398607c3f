/* Start, output and clock of a Cortex-M. Output and exit use semihosting, which an emulator or a debugger answers. */
#include "board.h"

/* From the linker script. */
extern uint32_t data_begin[], data_end[], data_load[], bss_begin[], bss_end[], stack_top[];

int main(void);
void reset(void);
void boot(void);

enum { STACK_PATTERN = 0x5ac3a53c };

static int semihost(int operation, const void *argument) {
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void board_print(const char *text) { semihost(0x04, text); }

void board_exit(int status) {
  const uint32_t stopped = 0x20026, failed = 0x20023;
  const uint32_t extended[2] = {stopped, (uint32_t)status};
  semihost(0x20, extended);
  semihost(0x18, (const void *)(status == 0 ? stopped : failed)); /* for hosts without call 0x20 */
  for (;;) {
  }
}

/* SysTick counts down 24 bits at the processor's clock. */
#define SYSTICK_CONTROL (*(volatile uint32_t *)0xe000e010)
#define SYSTICK_RELOAD (*(volatile uint32_t *)0xe000e014)
#define SYSTICK_VALUE (*(volatile uint32_t *)0xe000e018)
enum { TICKS = 1 << 24 };

static volatile uint32_t wraps;

static void tick(void) { ++wraps; }

void board_start_count(void) {
  SYSTICK_CONTROL = 0;
  SYSTICK_RELOAD = TICKS - 1;
  SYSTICK_VALUE = 0;
  wraps = 0;
  SYSTICK_CONTROL = 7; /* processor's clock, interrupt, on */
}

uint64_t board_count(void) {
  uint32_t before, value;
  uint64_t ticks;
  do {
    before = wraps;
    value = SYSTICK_VALUE;
  } while (before != wraps);
  ticks = (uint64_t)before * TICKS + (TICKS - 1 - value);
#ifdef EMULATED_MHZ
  /* Each instruction takes a nanosecond of emulated time. */
  return ticks * 1000 / EMULATED_MHZ;
#else
  return ticks;
#endif
}

#ifdef EMULATED_MHZ
const char board_unit[] = "instructions";
#else
const char board_unit[] = "cycles";
#endif

uint32_t board_stack_used(void) {
  const uint32_t *lowest = bss_end, *const here = __builtin_frame_address(0);
  while (lowest < here && *lowest == STACK_PATTERN) ++lowest;
  return (uint32_t)(here - lowest) * 4;
}

static void fault(void) {
  board_print("FAULT: an address that is not there, or the stack is too small\n");
  board_exit(2);
}

void __attribute__((noinline, used)) boot(void) {
  int status;
  const uint32_t *from = data_load;
  volatile uint32_t *to; /* volatile prevents calls of memcpy and memset, which would use the stack */
  for (to = data_begin; to < data_end; ++to) *to = *from++;
  for (to = bss_begin; to < bss_end; ++to) *to = 0;
  for (to = bss_end; to < (uint32_t *)__builtin_frame_address(0) - 32; ++to) *to = STACK_PATTERN;
  status = main();
  if (*bss_end != STACK_PATTERN) {
    board_print("FAULT: the stack reached the data: give it more RAM\n");
    status = 2;
  }
  board_exit(status);
}

void reset(void) {
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20; /* coprocessors 10 and 11: floats and vectors */
  __asm__ volatile("dsb\n\tisb" ::: "memory");
#endif
  __asm__ volatile("bl boot");
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault, fault,
    fault, fault, fault, fault, fault, fault, fault, tick};
