#include "framework/core/system/memory.hpp"

#include <limits>
#include <new>

namespace quantrain::system {

// Windows gives large pages only to users with the right to lock pages in memory.
size_t large_page() { return std::numeric_limits<size_t>::max(); }
void* map(size_t) { throw std::bad_alloc(); }
void unmap(void*, size_t) {}

}  // namespace quantrain::system
