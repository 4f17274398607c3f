#pragma once

namespace quantrain::test {

/// Whether sanitizers watch: loops take many times as long, and what only numbers can show was
/// shown without them.
#if defined(QUANTRAIN_SANITIZE_ADDRESS) || defined(QUANTRAIN_SANITIZE_THREAD)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace quantrain::test
