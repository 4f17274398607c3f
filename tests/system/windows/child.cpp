#include "tests/child.hpp"

#include <exception>

#include "framework/core/system/process.hpp"

namespace quantrain::test {
namespace {

struct Killed {};

}  // namespace

Child in_child(const std::function<std::string()>& f, unsigned) {
  Child child;
  const int64_t before = system::peak_memory();
  try {
    child.text = f();
  } catch (const std::exception& error) {
    child.text = error.what();
  } catch (const Killed&) {
    child.was_killed = true;
  }
  child.kilobytes = (system::peak_memory() - before) / 1024;
  return child;
}

void kill_child() { throw Killed(); }

}  // namespace quantrain::test
