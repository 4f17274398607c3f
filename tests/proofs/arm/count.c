// A plugin for QEMU in user mode: prints how many instructions the program executed. QEMU 6 to 8
// accept version 1 of the interface, QEMU 9 and later accept version 2. Both versions have the
// functions below. This file declares the functions, because Debian's QEMU comes without the
// header.
//   cc -shared -fPIC -D VERSION=1 -o count.so count.c && qemu-aarch64 -plugin ./count.so PROGRAM
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
                                           void (*translated)(uint64_t id,
                                                              struct qemu_plugin_tb* block));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb* block,
                                          void (*executed)(unsigned cpu, void* data),
                                          int flags,
                                          void* data);
void qemu_plugin_register_atexit_cb(uint64_t id,
                                    void (*ended)(uint64_t id, void* data),
                                    void* data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);

__attribute__((visibility("default"))) int qemu_plugin_version = VERSION;

static uint64_t instructions;

static void block_executed(unsigned cpu, void* data) {
  (void)cpu;
  instructions += (uintptr_t)data;
}

static void block_translated(uint64_t id, struct qemu_plugin_tb* block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_cb(
      block, block_executed, 0, (void*)qemu_plugin_tb_n_insns(block));
}

static void program_ended(uint64_t id, void* data) {
  (void)id;
  (void)data;
  fprintf(stderr, "instructions %" PRIu64 "\n", instructions);
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id,
                                                               const void* info,
                                                               int argc,
                                                               char** argv) {
  (void)info;
  (void)argc;
  (void)argv;
  qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
  qemu_plugin_register_atexit_cb(id, program_ended, NULL);
  return 0;
}
