#include "tests/child.hpp"

#include <exception>

#include "framework/core/system/process.hpp"

namespace quantrain::test {

Child in_child(const std::function<std::string()>& f, unsigned) {
  Child child;
  const int64_t before = system::peak_memory();
  try {
    child.text = f();
  } catch (const std::exception& error) {
    child.text = error.what();
  }
  child.kilobytes = (system::peak_memory() - before) / 1024;
  return child;
}

}  // namespace quantrain::test
