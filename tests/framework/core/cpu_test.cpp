#include "framework/core/cpu.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/system.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#endif

namespace quantrain {
namespace {

bool usable(Isa isa) {
  const std::vector<Isa> isas = usable_isas();
  return std::find(isas.begin(), isas.end(), isa) != isas.end();
}

// Runs the test case "child: ..." below in a separate process, because a process reads
// QUANTRAIN_ISA only once.
bool child_sees(const std::string& forced, const std::string& expected) {
  return test::run_again({{"QUANTRAIN_ISA", forced}, {"QUANTRAIN_TEST_EXPECTED", expected}},
                         "[isa-child]");
}

}  // namespace

TEST_CASE("isa_from_name inverts isa_name and refuses other names", "[core][cpu]") {
  for (const Isa isa : kAllIsas) CHECK(isa_from_name(isa_name(isa)) == isa);
  CHECK(isa_name(Isa::kReference) == "reference");
  QUANTRAIN_CHECK_ERROR(
      isa_from_name("avx9"),
      DataError,
      "[isa] unknown instruction set \"avx9\": there are reference, sse2, avx2, ");
  QUANTRAIN_CHECK_ERROR(isa_from_name(""), DataError, "unknown instruction set \"\"");
  QUANTRAIN_CHECK_ERROR(isa_from_name("AVX2"), DataError, "unknown instruction set \"AVX2\"");
}

TEST_CASE("an instruction set is usable if it is both built and supported", "[core][cpu]") {
  CHECK(usable(Isa::kReference));
  for (const Isa isa : kAllIsas) CHECK(usable(isa) == (is_built(isa) && is_supported(isa)));
  const std::vector<Isa> isas = usable_isas();
  CHECK(std::is_sorted(isas.begin(), isas.end()));
  CHECK(usable(chosen_isa()));
}

TEST_CASE("an instruction set can be chosen if it is usable", "[core][cpu]") {
  const Isa before = chosen_isa();
  for (const Isa isa : kAllIsas) {
    if (usable(isa)) {
      set_isa(isa);
      CHECK(chosen_isa() == isa);
    } else {
      const Isa chosen = chosen_isa();
      QUANTRAIN_CHECK_ERROR(set_isa(isa), DataError, std::string(isa_name(isa)) + " is not ");
      CHECK(chosen_isa() == chosen);
    }
  }
  set_isa(before);
}

TEST_CASE("the environment forces an instruction set", "[core][cpu]") {
  for (const Isa isa : kAllIsas) {
    const std::string name(isa_name(isa));
    CHECK(child_sees(name, usable(isa) ? name : name + " is not "));
  }
  CHECK(child_sees("", std::string(isa_name(usable_isas().back()))));
  CHECK(child_sees("avx9", "unknown instruction set \"avx9\""));
  CHECK_FALSE(child_sees("reference", "sse2"));  // the child fails if it expects the wrong name
}

TEST_CASE("child: the chosen instruction set, or its error, is the expected one",
          "[.][isa-child]") {
  const char* const expected = std::getenv("QUANTRAIN_TEST_EXPECTED");
  REQUIRE(expected != nullptr);
  std::string seen;
  try {
    seen = isa_name(chosen_isa());
  } catch (const DataError& error) {
    seen = error.what();
  }
  CHECK_THAT(seen, test::ContainsSubstring(expected));
}

#if defined(__x86_64__) && defined(__linux__)
TEST_CASE("AMX is not chosen if Linux refuses the permission", "[core][cpu]") {
  CHECK(test::run_again({{"QUANTRAIN_ISA", ""}}, "[isa-refused]"));
}

// A separate process, because it cannot take its filter of system calls back. Only where the CPU
// has AMX, this sees more than the test above.
TEST_CASE("child: without the permission, AMX is not usable", "[.][isa-refused]") {
  sock_filter refuse[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
                          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x1023, 0, 1),  // ARCH_REQ_XCOMP_PERM
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{sizeof(refuse) / sizeof(refuse[0]), refuse};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return;
  REQUIRE((syscall(SYS_arch_prctl, 0x1023, 18) == -1 && errno == EPERM));
  CHECK_FALSE(is_supported(Isa::kAmx));
  CHECK_FALSE(usable(Isa::kAmx));
  CHECK(chosen_isa() == usable_isas().back());
}
#endif

}  // namespace quantrain
