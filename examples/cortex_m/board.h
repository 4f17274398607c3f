/* What main.c needs from a board. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

/* Prints a text. */
void board_print(const char *text);
/* Ends the program; status 0 is success. */
void board_exit(int status) __attribute__((noreturn));

/* Starts counting from 0. */
void board_start_count(void);
/* The count: processor cycles on a board, instructions in an emulator (see board_unit). */
uint64_t board_count(void);
extern const char board_unit[];

/* Bytes of the stack, below the caller's frame, that were overwritten since the program started. */
uint32_t board_stack_used(void);

#endif
