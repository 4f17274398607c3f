#pragma once

// The only header that depends on Catch2's version (2.13 or 3).
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace Catch {
using Catch::Matchers::MatcherBase;
}
namespace quantrain::test {
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
}  // namespace quantrain::test
#else
#include <catch2/catch.hpp>
namespace quantrain::test {
using Catch::Detail::Approx;
inline auto ContainsSubstring(const std::string& text) { return Catch::Matchers::Contains(text); }
}  // namespace quantrain::test
#endif

/// Checks that the expression throws this type with this text in its message.
#define QUANTRAIN_CHECK_ERROR(expression, type, text) \
  CHECK_THROWS_MATCHES(expression, type, quantrain::test::MessageContains(text))

namespace quantrain::test {

class MessageContains : public Catch::MatcherBase<std::exception> {
 public:
  explicit MessageContains(std::string text) : text_(std::move(text)) {}
  bool match(const std::exception& error) const override {
    return std::string(error.what()).find(text_) != std::string::npos;
  }
  std::string describe() const override { return "has \"" + text_ + "\" in its message"; }

 private:
  std::string text_;
};

}  // namespace quantrain::test
