#pragma once

namespace quantrain::test {

/// True in sanitizer builds. Loops are many times slower there, and builds without sanitizers check
/// the numbers already, so tests may be shorter.
#if defined(QUANTRAIN_SANITIZE_ADDRESS) || defined(QUANTRAIN_SANITIZE_THREAD)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace quantrain::test
